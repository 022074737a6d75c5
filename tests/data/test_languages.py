"""Names and locales of languages, by their codes."""

from tfm.data.languages import language_name, locale_of


def test_codes_in_both_spellings_have_names() -> None:
    assert language_name("pt-BR") == language_name("pt_BR") == "Portuguese (Brazil)"
    assert language_name("de") == "German" and language_name("zh-Hant") == "Chinese (Traditional)"


def test_a_code_that_nobody_knows_is_its_own_name() -> None:
    for code in ("xx-none", "", "e n", "en-US-u"):
        assert locale_of(code) is None and language_name(code) == code
