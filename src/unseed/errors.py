"""Exceptions and warnings: one sentence that names the cause, the value and the knob to turn."""


class UnseedError(Exception):
    """Base of every error raised by unseed on purpose."""


class InvalidInputError(UnseedError, ValueError):
    """An argument or a data set cannot be used; the text names it, its value and the remedy."""


class ModelFileError(InvalidInputError):
    """A saved model cannot be read or written; the text names the file, the fault and the remedy."""


class SingularKernelError(UnseedError):
    """The regularised kernel matrix could not be factorised."""


class NotEnoughMemoryError(UnseedError, MemoryError):
    """The n-by-n matrices of a job do not fit the machine; the text names what would fit."""


class NotAvailableError(UnseedError, NotImplementedError):
    """A promised part of unseed that this version does not contain."""


class ConditioningWarning(UserWarning):
    """A kernel matrix was factorised only after jitter was added to its diagonal."""


class AccuracyWarning(UserWarning):
    """A quadrature kernel is less accurate than unseed promises; the text says by how much."""


class FewLabelsWarning(UserWarning):
    """A class has so few rows that hardly anything can be known of it."""
