// The kernels of `_recursion.py` at every pair of two sets of points, from unit vectors to the result in one pass: what
// is in between stays on the chip. Before this text stands
//   #define IS_NTK 1 (tangent kernel) or 0 (NNGP)
// and further down, in the place of a comment, the moments of an activation at a pair (`Expectations.curve`):
//   Moments moments(double cosine, double sine, double root, double other_root, double power_root, double other_power_root,
//                   bool is_last)

constexpr int TILE = 64;      // rows and columns that a group of threads computes
constexpr int CHUNK = 16;     // coordinates of its points that are held at a time
constexpr int THREADS = 256;  // each adds up the inner products of 4 x 4 pairs
constexpr double PI = 3.14159265358979323846, OVER_PI = 1 / PI;  // dividing takes as long as twenty products
constexpr double CLOSE_SINE = 0.01;  // above it, sqrt(1 - cos^2) and acos have all their digits (`_expectations._pairs`)

struct Moments {
  double value, derivative, gap;  // as in `unseed._expectations`, gap being 1 - value / its largest possible modulus
};

__device__ inline double at_least(double x, double bound) { return x > bound ? x : bound; }

// Angle in [0, pi], with all its digits wherever sine and cosine have theirs.
__device__ inline double angle_of(double cosine, double sine) {
  return sine >= CLOSE_SINE ? acos(cosine) : atan2(sine, cosine);
}

__device__ inline double relative_gap(double value, double power, double other_power) {
  double largest = power * other_power;  // roots of the powers
  return largest > 0 ? 1 - value / largest : 1;
}

// THE CURVE

// Kernel of a pair from the cosine of its unit vectors. Layer l of a point has its root variance at layers[2 l n] and the root
// of its activations' mean square at layers[(2 l + 1) n].
__device__ inline double pair_value(double cosine, const double* left, const double* right, const double* left_layers,
                                    const double* right_layers, int n, int m, int d, int depth, double w2, double b2,
                                    double start_b2) {
  cosine = fmin(fmax(cosine, -1.0), 1.0);
  double sine = sqrt((1 - cosine) * (1 + cosine));
  if (sine < CLOSE_SINE) {  // nearly parallel or opposite: from coordinate differences
    double side = cosine > 0 ? 1 : -1, gap = 0;
    for (int k = 0; k < d; ++k) {
      double difference = left[k] - side * right[k];
      gap += difference * difference / 2;
    }
    sine = sqrt(at_least(gap * (2 - gap), 0));
  }
  double result = cosine * (left_layers[0] * right_layers[0]) + (b2 - start_b2);
  for (int layer = 0; layer < depth; ++layer) {
    const double *here = left_layers + size_t(2 * layer) * n, *there = right_layers + size_t(2 * layer) * m;
    bool is_last = layer + 1 == depth;
    Moments found = moments(cosine, sine, here[0], there[0], here[n], there[m], is_last);
#if IS_NTK
    result = w2 * (found.value + found.derivative * result) + b2;
#else
    result = w2 * found.value + start_b2;
#endif
    if (is_last) break;
    double gap = found.gap;
    if (start_b2 > 0) {  // next_layer_angles in `_expectations._pairs`: a sum of terms that are not negative
      double p = here[n], q = there[m], product = w2 * (p * q), norm = here[2 * size_t(n)] * there[2 * size_t(m)];
      gap = (gap * product + w2 * start_b2 * (p - q) * (p - q) / (product + norm + start_b2)) / norm;
    }
    gap = fmin(at_least(gap, 0), 2.0);
    cosine = 1 - gap;
    sine = sqrt(gap * (2 - gap));
  }
  return result;
}

// out[set][row][column]. With is_gram the two sets of points are one: only tiles up to the diagonal are computed, written
// twice, and a point with itself has the value of `diagonal`.
extern "C" __global__ void __launch_bounds__(THREADS)
    pairs(const double* left, const double* right, const double* left_layers, const double* right_layers,
          const double* diagonal, double* out, long long stride, int n, int m, int d, int depth, int is_gram, double w2,
          double b2, double start_b2) {
  __shared__ double tile[TILE][TILE + 1];
  double(*rows)[CHUNK + 1] = reinterpret_cast<double(*)[CHUNK + 1]>(&tile[0][0]);  // used up before the tile is filled
  double(*columns)[CHUNK + 1] = rows + TILE;
  const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE, thread = threadIdx.x;
  if (is_gram && first_column > first_row) return;
  const size_t set = blockIdx.z;
  left += set * n * d, right += set * m * d, diagonal += set * n, out += set * n * stride;
  left_layers += set * 2 * depth * n, right_layers += set * 2 * depth * m;

  double sums[4][4] = {};
  const int x = thread % 16, y = thread / 16;
  for (int start = 0; start < d; start += CHUNK) {
    for (int i = thread; i < TILE * CHUNK; i += THREADS) {
      int point = i / CHUNK, k = i % CHUNK, coordinate = start + k;
      bool is_there = coordinate < d;
      rows[point][k] = is_there && first_row + point < n ? left[size_t(first_row + point) * d + coordinate] : 0;
      columns[point][k] = is_there && first_column + point < m ? right[size_t(first_column + point) * d + coordinate] : 0;
    }
    __syncthreads();
    const int n_there = min(CHUNK, d - start);
#pragma unroll 4
    for (int k = 0; k < n_there; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += rows[y + 16 * i][k] * columns[x + 16 * j][k];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) tile[y + 16 * i][x + 16 * j] = sums[i][j];
  __syncthreads();

  const int c = thread % TILE, column = first_column + c;
  for (int r = thread / TILE; r < TILE; r += THREADS / TILE) {
    const int row = first_row + r;
    if (row >= n || column >= m || (is_gram && column > row)) continue;
    double value = is_gram && row == column
                       ? diagonal[row]
                       : pair_value(tile[r][c], left + size_t(row) * d, right + size_t(column) * d, left_layers + row,
                                    right_layers + column, n, m, d, depth, w2, b2, start_b2);
    out[size_t(row) * stride + column] = value;
    tile[r][c] = value;
  }
  if (!is_gram) return;
  __syncthreads();
  const int other = first_row + c;  // along a row above the diagonal
  for (int r = thread / TILE; r < TILE; r += THREADS / TILE)
    if (other < n && first_column + r < other) out[size_t(first_column + r) * stride + other] = tile[c][r];
}
