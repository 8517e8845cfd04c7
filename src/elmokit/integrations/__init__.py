"""ELMo inside other libraries: one file per library, which imports that library.

Nothing else in the package imports these modules. A missing library is reported with the pip
command of its extra.
"""
