"""A trained run for other programs: a CTranslate2 directory, and the proof that it translates as the run does.

    specification   our Transformer in CTranslate2's terms
    directory       everything that translating needs, in one directory
    argos           a package for Argos Translate and LibreTranslate
    parity          both translate the same sentences
    readme          what stands beside the model for whoever uses it

CTranslate2 is an extra (`pip install ctranslate2`); only `specification`, `directory`, `argos` and `parity` need it.
"""
