"""The words of the toy language, written as a small English-German dictionary.

Every English word has one sense here (so one German sentence per English sentence), and nouns are
grouped by kind (person, food, ...) so that verbs and adjectives only combine with nouns that make sense.
"""

from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "person",
    "relative",
    "animal",
    "food",
    "text",
    "thing",
    "clothing",
    "opening",
    "vehicle",
    "building",
    "landscape",
]
Article: TypeAlias = Literal["der", "die", "das"]
Case: TypeAlias = Literal["nominative", "accusative", "dative"]
Tense: TypeAlias = Literal["present", "perfect", "past", "modal"]
Frame: TypeAlias = Literal["intransitive", "motion", "transitive", "dative", "ditransitive", "prepositional"]


class Person(IntEnum):
    """Which present-tense form the subject asks for; German "we" and "they" share one form."""

    FIRST = 0
    THIRD = 1
    PLURAL = 2


class Noun(NamedTuple):
    """A countable noun; the German article gives its gender, as in a dictionary."""

    english: str
    english_plural: str
    article: Article
    german: str
    german_plural: str
    german_dative_plural: str
    german_oblique: str = ""
    """Accusative and dative singular of a weak noun (der Junge, den Jungen); empty for all others."""
    prepositions: tuple[str, ...] = ()
    """For places: the English prepositions that go with the noun."""


class Adjective(NamedTuple):
    """An adjective: `german` after "ist", `stem` before an ending (teuer, but ein teures Buch)."""

    english: str
    german: str
    stem: str
    kinds: tuple[Kind, ...]


class Preposition(NamedTuple):
    """A preposition together with the case that it governs in German."""

    english: str
    german: str
    case: Case


class Conjunction(NamedTuple):
    """A subordinating conjunction; the German clause after it ends with its finite verb."""

    english: str
    german: str


class EnglishVerb(NamedTuple):
    """The four forms of an English verb that the grammar uses."""

    base: str
    third: str
    past: str
    participle: str


class GermanVerb(NamedTuple):
    """A German verb: present forms (ich, er, wir) without the separable prefix, and the whole participle."""

    present: tuple[str, str, str]
    participle: str
    prefix: str = ""
    auxiliary: Literal["haben", "sein"] = "haben"


class Verb(NamedTuple):
    """A verb of both languages with the kinds of subject and object that it accepts."""

    english: EnglishVerb
    german: GermanVerb
    subjects: tuple[Kind, ...]
    objects: tuple[Kind, ...] = ()
    preposition: Preposition | None = None
    conjunction: Conjunction | None = None


class Modal(NamedTuple):
    """A modal verb (or future "will"), followed by an infinitive; no negated form means: never negate it."""

    english: str
    english_third: str
    negated: str
    negated_third: str
    german: tuple[str, str, str]


class Adverb(NamedTuple):
    """An adverb of time and the tenses that it fits."""

    english: str
    german: str
    tenses: tuple[Tense, ...]


class Pronoun(NamedTuple):
    """A personal pronoun in the nominative."""

    english: str
    german: str
    person: Person


PRONOUNS = (
    Pronoun("i", "ich", Person.FIRST),
    Pronoun("he", "er", Person.THIRD),
    Pronoun("she", "sie", Person.THIRD),
    Pronoun("we", "wir", Person.PLURAL),
    Pronoun("they", "sie", Person.PLURAL),
)

# Determiners that inflect like "ein"; "one" is the stressed "a".
EIN_WORDS = {"a": "ein", "one": "ein", "no": "kein", "my": "mein", "our": "unser", "his": "sein"}
POSSESSIVES = ("my", "our", "his")
NUMBERS = {
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
    "seven": "sieben",
    "eight": "acht",
    "nine": "neun",
    "ten": "zehn",
    "eleven": "elf",
    "twelve": "zwölf",
}

NOUNS: dict[Kind, tuple[Noun, ...]] = {
    "person": (
        Noun("man", "men", "der", "Mann", "Männer", "Männern"),
        Noun("woman", "women", "die", "Frau", "Frauen", "Frauen"),
        Noun("child", "children", "das", "Kind", "Kinder", "Kindern"),
        Noun("boy", "boys", "der", "Junge", "Jungen", "Jungen", "Jungen"),
        Noun("girl", "girls", "das", "Mädchen", "Mädchen", "Mädchen"),
        Noun("student", "students", "der", "Student", "Studenten", "Studenten", "Studenten"),
        Noun("doctor", "doctors", "der", "Arzt", "Ärzte", "Ärzten"),
        Noun("farmer", "farmers", "der", "Bauer", "Bauern", "Bauern", "Bauern"),
        Noun("king", "kings", "der", "König", "Könige", "Königen"),
        Noun("queen", "queens", "die", "Königin", "Königinnen", "Königinnen"),
        Noun("prince", "princes", "der", "Prinz", "Prinzen", "Prinzen", "Prinzen"),
    ),
    "relative": (
        Noun("father", "fathers", "der", "Vater", "Väter", "Vätern"),
        Noun("mother", "mothers", "die", "Mutter", "Mütter", "Müttern"),
        Noun("brother", "brothers", "der", "Bruder", "Brüder", "Brüdern"),
        Noun("sister", "sisters", "die", "Schwester", "Schwestern", "Schwestern"),
        Noun("uncle", "uncles", "der", "Onkel", "Onkel", "Onkeln"),
        Noun("aunt", "aunts", "die", "Tante", "Tanten", "Tanten"),
        Noun("friend", "friends", "der", "Freund", "Freunde", "Freunden"),
        Noun("neighbor", "neighbors", "der", "Nachbar", "Nachbarn", "Nachbarn", "Nachbarn"),
        Noun("teacher", "teachers", "der", "Lehrer", "Lehrer", "Lehrern"),
    ),
    "animal": (
        Noun("dog", "dogs", "der", "Hund", "Hunde", "Hunden"),
        Noun("cat", "cats", "die", "Katze", "Katzen", "Katzen"),
        Noun("horse", "horses", "das", "Pferd", "Pferde", "Pferden"),
        Noun("bird", "birds", "der", "Vogel", "Vögel", "Vögeln"),
        Noun("cow", "cows", "die", "Kuh", "Kühe", "Kühen"),
        Noun("bear", "bears", "der", "Bär", "Bären", "Bären", "Bären"),
        Noun("lion", "lions", "der", "Löwe", "Löwen", "Löwen", "Löwen"),
        Noun("mouse", "mice", "die", "Maus", "Mäuse", "Mäusen"),
        Noun("pig", "pigs", "das", "Schwein", "Schweine", "Schweinen"),
        Noun("elephant", "elephants", "der", "Elefant", "Elefanten", "Elefanten", "Elefanten"),
    ),
    "food": (
        Noun("apple", "apples", "der", "Apfel", "Äpfel", "Äpfeln"),
        Noun("pear", "pears", "die", "Birne", "Birnen", "Birnen"),
        Noun("egg", "eggs", "das", "Ei", "Eier", "Eiern"),
        Noun("cake", "cakes", "der", "Kuchen", "Kuchen", "Kuchen"),
        Noun("potato", "potatoes", "die", "Kartoffel", "Kartoffeln", "Kartoffeln"),
        Noun("tomato", "tomatoes", "die", "Tomate", "Tomaten", "Tomaten"),
        Noun("sausage", "sausages", "die", "Wurst", "Würste", "Würsten"),
        Noun("cookie", "cookies", "der", "Keks", "Kekse", "Keksen"),
        Noun("croissant", "croissants", "das", "Croissant", "Croissants", "Croissants"),
    ),
    "text": (
        Noun("book", "books", "das", "Buch", "Bücher", "Büchern"),
        Noun("letter", "letters", "der", "Brief", "Briefe", "Briefen"),
        Noun("story", "stories", "die", "Geschichte", "Geschichten", "Geschichten"),
        Noun("poem", "poems", "das", "Gedicht", "Gedichte", "Gedichten"),
        Noun("novel", "novels", "der", "Roman", "Romane", "Romanen"),
        Noun("message", "messages", "die", "Nachricht", "Nachrichten", "Nachrichten"),
    ),
    "thing": (
        Noun("key", "keys", "der", "Schlüssel", "Schlüssel", "Schlüsseln"),
        Noun("cup", "cups", "die", "Tasse", "Tassen", "Tassen"),
        Noun("knife", "knives", "das", "Messer", "Messer", "Messern"),
        Noun("lamp", "lamps", "die", "Lampe", "Lampen", "Lampen"),
        Noun("chair", "chairs", "der", "Stuhl", "Stühle", "Stühlen"),
        Noun("picture", "pictures", "das", "Bild", "Bilder", "Bildern"),
        Noun("bottle", "bottles", "die", "Flasche", "Flaschen", "Flaschen"),
        Noun("plate", "plates", "der", "Teller", "Teller", "Tellern"),
        Noun("gift", "gifts", "das", "Geschenk", "Geschenke", "Geschenken"),
        Noun("umbrella", "umbrellas", "der", "Regenschirm", "Regenschirme", "Regenschirmen"),
        Noun("clock", "clocks", "die", "Uhr", "Uhren", "Uhren"),
    ),
    "clothing": (
        Noun("coat", "coats", "der", "Mantel", "Mäntel", "Mänteln"),
        Noun("dress", "dresses", "das", "Kleid", "Kleider", "Kleidern"),
        Noun("shirt", "shirts", "das", "Hemd", "Hemden", "Hemden"),
        Noun("jacket", "jackets", "die", "Jacke", "Jacken", "Jacken"),
        Noun("skirt", "skirts", "der", "Rock", "Röcke", "Röcken"),
        Noun("sweater", "sweaters", "der", "Pullover", "Pullover", "Pullovern"),
    ),
    "opening": (
        Noun("door", "doors", "die", "Tür", "Türen", "Türen"),
        Noun("window", "windows", "das", "Fenster", "Fenster", "Fenstern"),
        Noun("box", "boxes", "die", "Kiste", "Kisten", "Kisten"),
        Noun("suitcase", "suitcases", "der", "Koffer", "Koffer", "Koffern"),
        Noun("cupboard", "cupboards", "der", "Schrank", "Schränke", "Schränken"),
    ),
    "vehicle": (
        Noun("car", "cars", "das", "Auto", "Autos", "Autos"),
        Noun("bicycle", "bicycles", "das", "Fahrrad", "Fahrräder", "Fahrrädern"),
        Noun("bus", "buses", "der", "Bus", "Busse", "Bussen"),
        Noun("train", "trains", "der", "Zug", "Züge", "Zügen"),
        Noun("ship", "ships", "das", "Schiff", "Schiffe", "Schiffen"),
        Noun("carriage", "carriages", "die", "Kutsche", "Kutschen", "Kutschen"),
    ),
    "building": (
        Noun("house", "houses", "das", "Haus", "Häuser", "Häusern", "", ("in", "in front of", "behind", "to")),
        Noun("school", "schools", "die", "Schule", "Schulen", "Schulen", "", ("in", "in front of", "to")),
        Noun("church", "churches", "die", "Kirche", "Kirchen", "Kirchen", "", ("behind", "next to", "to")),
        Noun("castle", "castles", "das", "Schloss", "Schlösser", "Schlössern", "", ("in", "behind", "to")),
        Noun("tower", "towers", "der", "Turm", "Türme", "Türmen", "", ("in front of", "next to", "to")),
        Noun("station", "stations", "der", "Bahnhof", "Bahnhöfe", "Bahnhöfen", "", ("at", "behind", "to")),
        Noun("kitchen", "kitchens", "die", "Küche", "Küchen", "Küchen", "", ("in",)),
        Noun("room", "rooms", "das", "Zimmer", "Zimmer", "Zimmern", "", ("in",)),
        Noun("hotel", "hotels", "das", "Hotel", "Hotels", "Hotels", "", ("in", "in front of", "to")),
        Noun("barn", "barns", "die", "Scheune", "Scheunen", "Scheunen", "", ("in", "behind", "next to")),
    ),
    "landscape": (
        Noun("garden", "gardens", "der", "Garten", "Gärten", "Gärten", "", ("in", "behind")),
        Noun("park", "parks", "der", "Park", "Parks", "Parks", "", ("in", "next to", "to")),
        Noun("forest", "forests", "der", "Wald", "Wälder", "Wäldern", "", ("in", "behind")),
        Noun("river", "rivers", "der", "Fluss", "Flüsse", "Flüssen", "", ("at", "to")),
        Noun("lake", "lakes", "der", "See", "Seen", "Seen", "", ("at", "to")),
        Noun("mountain", "mountains", "der", "Berg", "Berge", "Bergen", "", ("on", "behind")),
        Noun("bridge", "bridges", "die", "Brücke", "Brücken", "Brücken", "", ("on", "under", "to")),
        Noun("tree", "trees", "der", "Baum", "Bäume", "Bäumen", "", ("under", "behind", "next to")),
        Noun("village", "villages", "das", "Dorf", "Dörfer", "Dörfern", "", ("in",)),
        Noun("city", "cities", "die", "Stadt", "Städte", "Städten", "", ("in",)),
        Noun("meadow", "meadows", "die", "Wiese", "Wiesen", "Wiesen", "", ("on", "next to")),
        Noun("island", "islands", "die", "Insel", "Inseln", "Inseln", "", ("on",)),
    ),
}

ADJECTIVES = (
    Adjective("old", "alt", "alt", ("person", "relative", "animal", "thing", "clothing", "vehicle", "building")),
    Adjective("young", "jung", "jung", ("person", "relative", "animal")),
    Adjective("friendly", "freundlich", "freundlich", ("person", "relative", "animal")),
    Adjective("clever", "klug", "klug", ("person", "relative", "animal")),
    Adjective("happy", "glücklich", "glücklich", ("person", "relative")),
    Adjective("sad", "traurig", "traurig", ("person", "relative", "text")),
    Adjective("tired", "müde", "müd", ("person", "relative", "animal")),
    Adjective("hungry", "hungrig", "hungrig", ("person", "relative", "animal")),
    Adjective("sick", "krank", "krank", ("person", "relative", "animal")),
    Adjective("rich", "reich", "reich", ("person", "relative")),
    Adjective("poor", "arm", "arm", ("person", "relative")),
    Adjective("strong", "stark", "stark", ("person", "animal")),
    Adjective("lazy", "faul", "faul", ("person", "relative", "animal")),
    Adjective("wild", "wild", "wild", ("animal",)),
    Adjective("small", "klein", "klein", ("animal", "food", "thing", "opening", "building", "landscape")),
    Adjective("big", "groß", "groß", ("animal", "food", "thing", "opening", "vehicle", "building", "landscape")),
    Adjective("beautiful", "schön", "schön", ("text", "thing", "clothing", "building", "landscape")),
    Adjective("famous", "berühmt", "berühmt", ("person", "text", "building", "landscape")),
    Adjective("quiet", "ruhig", "ruhig", ("building", "landscape")),
    Adjective("dark", "dunkel", "dunkl", ("building", "landscape")),
    Adjective("red", "rot", "rot", ("food", "thing", "clothing", "opening", "vehicle")),
    Adjective("blue", "blau", "blau", ("thing", "clothing", "opening", "vehicle")),
    Adjective("green", "grün", "grün", ("thing", "clothing", "opening", "vehicle")),
    Adjective("black", "schwarz", "schwarz", ("animal", "thing", "clothing", "vehicle")),
    Adjective("white", "weiß", "weiß", ("animal", "thing", "clothing", "opening")),
    Adjective("brown", "braun", "braun", ("animal", "clothing", "opening")),
    Adjective("new", "neu", "neu", ("text", "thing", "clothing", "opening", "vehicle", "building")),
    Adjective("cheap", "billig", "billig", ("food", "thing", "clothing", "vehicle")),
    Adjective("expensive", "teuer", "teur", ("food", "thing", "clothing", "vehicle")),
    Adjective("heavy", "schwer", "schwer", ("thing", "opening")),
    Adjective("clean", "sauber", "sauber", ("clothing", "opening", "vehicle")),
    Adjective("dirty", "schmutzig", "schmutzig", ("clothing", "opening", "vehicle")),
    Adjective("broken", "kaputt", "kaputt", ("opening", "vehicle")),
    Adjective("fast", "schnell", "schnell", ("vehicle",)),
    Adjective("slow", "langsam", "langsam", ("vehicle",)),
    Adjective("warm", "warm", "warm", ("food", "clothing")),
    Adjective("fresh", "frisch", "frisch", ("food",)),
    Adjective("delicious", "lecker", "lecker", ("food",)),
    Adjective("long", "lang", "lang", ("text",)),
    Adjective("interesting", "interessant", "interessant", ("text",)),
    Adjective("boring", "langweilig", "langweilig", ("text",)),
)

PLACE_PREPOSITIONS = {
    "in": Preposition("in", "in", "dative"),
    "in front of": Preposition("in front of", "vor", "dative"),
    "behind": Preposition("behind", "hinter", "dative"),
    "next to": Preposition("next to", "neben", "dative"),
    "under": Preposition("under", "unter", "dative"),
    "on": Preposition("on", "auf", "dative"),
    "at": Preposition("at", "an", "dative"),
    "to": Preposition("to", "zu", "dative"),
}

TIME_ADVERBS = (
    Adverb("today", "heute", ("present", "perfect", "modal")),
    Adverb("now", "jetzt", ("present",)),
    Adverb("this week", "diese Woche", ("perfect", "modal")),
    Adverb("in the evening", "am Abend", ("present", "modal")),
    Adverb("tomorrow", "morgen", ("modal",)),
    Adverb("next week", "nächste Woche", ("modal",)),
    Adverb("yesterday", "gestern", ("past",)),
    Adverb("last week", "letzte Woche", ("past",)),
)
FREQUENCY_ADVERBS = (
    Adverb("always", "immer", ("present",)),
    Adverb("often", "oft", ("present", "perfect")),
    Adverb("sometimes", "manchmal", ("present", "perfect")),
    Adverb("rarely", "selten", ("present", "perfect")),
    Adverb("never", "nie", ("present", "perfect")),
)

MODALS = (
    Modal("can", "can", "cannot", "cannot", ("kann", "kann", "können")),
    Modal("must", "must", "", "", ("muss", "muss", "müssen")),
    Modal("want to", "wants to", "do not want to", "does not want to", ("will", "will", "wollen")),
    Modal("should", "should", "should not", "should not", ("soll", "soll", "sollen")),
    Modal("will", "will", "will not", "will not", ("werde", "wird", "werden")),
)

CONJUNCTIONS = (Conjunction("because", "weil"), Conjunction("although", "obwohl"))
THAT = Conjunction("that", "dass")
WHETHER = Conjunction("whether", "ob")

PEOPLE: tuple[Kind, ...] = ("person", "relative")
LIVING: tuple[Kind, ...] = ("person", "relative", "animal")

COPULA = Verb(
    EnglishVerb("be", "is", "was", "been"),
    GermanVerb(("bin", "ist", "sind"), "gewesen", "", "sein"),
    LIVING,
)

VERBS: dict[Frame, tuple[Verb, ...]] = {
    "intransitive": (
        Verb(
            EnglishVerb("sleep", "sleeps", "slept", "slept"),
            GermanVerb(("schlafe", "schläft", "schlafen"), "geschlafen"),
            LIVING,
        ),
        Verb(
            EnglishVerb("laugh", "laughs", "laughed", "laughed"),
            GermanVerb(("lache", "lacht", "lachen"), "gelacht"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("sing", "sings", "sang", "sung"),
            GermanVerb(("singe", "singt", "singen"), "gesungen"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("work", "works", "worked", "worked"),
            GermanVerb(("arbeite", "arbeitet", "arbeiten"), "gearbeitet"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("cry", "cries", "cried", "cried"),
            GermanVerb(("weine", "weint", "weinen"), "geweint"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("smile", "smiles", "smiled", "smiled"),
            GermanVerb(("lächle", "lächelt", "lächeln"), "gelächelt"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("stand up", "stands up", "stood up", "stood up"),
            GermanVerb(("stehe", "steht", "stehen"), "aufgestanden", "auf", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("wake up", "wakes up", "woke up", "woken up"),
            GermanVerb(("wache", "wacht", "wachen"), "aufgewacht", "auf", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("fall asleep", "falls asleep", "fell asleep", "fallen asleep"),
            GermanVerb(("schlafe", "schläft", "schlafen"), "eingeschlafen", "ein", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("arrive", "arrives", "arrived", "arrived"),
            GermanVerb(("komme", "kommt", "kommen"), "angekommen", "an", "sein"),
            ("person", "relative", "text", "vehicle"),
        ),
        Verb(
            EnglishVerb("disappear", "disappears", "disappeared", "disappeared"),
            GermanVerb(("verschwinde", "verschwindet", "verschwinden"), "verschwunden", "", "sein"),
            ("animal", "food", "text", "thing", "clothing", "opening", "vehicle"),
        ),
    ),
    "motion": (
        Verb(
            EnglishVerb("go", "goes", "went", "gone"),
            GermanVerb(("gehe", "geht", "gehen"), "gegangen", "", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("run", "runs", "ran", "run"),
            GermanVerb(("renne", "rennt", "rennen"), "gerannt", "", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("drive", "drives", "drove", "driven"),
            GermanVerb(("fahre", "fährt", "fahren"), "gefahren", "", "sein"),
            PEOPLE,
        ),
        Verb(
            EnglishVerb("come", "comes", "came", "come"),
            GermanVerb(("komme", "kommt", "kommen"), "gekommen", "", "sein"),
            LIVING,
        ),
        Verb(
            EnglishVerb("come back", "comes back", "came back", "come back"),
            GermanVerb(("komme", "kommt", "kommen"), "zurückgekommen", "zurück", "sein"),
            LIVING,
        ),
    ),
    "transitive": (
        Verb(
            EnglishVerb("see", "sees", "saw", "seen"),
            GermanVerb(("sehe", "sieht", "sehen"), "gesehen"),
            LIVING,
            ("person", "relative", "animal", "vehicle", "building", "landscape"),
        ),
        Verb(
            EnglishVerb("look at", "looks at", "looked at", "looked at"),
            GermanVerb(("sehe", "sieht", "sehen"), "angesehen", "an"),
            LIVING,
            ("person", "animal", "thing", "clothing", "vehicle", "building"),
        ),
        Verb(
            EnglishVerb("look for", "looks for", "looked for", "looked for"),
            GermanVerb(("suche", "sucht", "suchen"), "gesucht"),
            LIVING,
            ("person", "relative", "animal", "thing", "text"),
        ),
        Verb(
            EnglishVerb("find", "finds", "found", "found"),
            GermanVerb(("finde", "findet", "finden"), "gefunden"),
            PEOPLE,
            ("animal", "thing", "clothing", "text"),
        ),
        Verb(
            EnglishVerb("hear", "hears", "heard", "heard"),
            GermanVerb(("höre", "hört", "hören"), "gehört"),
            LIVING,
            ("person", "relative", "animal", "vehicle"),
        ),
        Verb(
            EnglishVerb("love", "loves", "loved", "loved"),
            GermanVerb(("liebe", "liebt", "lieben"), "geliebt"),
            PEOPLE,
            ("person", "relative", "animal"),
        ),
        Verb(
            EnglishVerb("visit", "visits", "visited", "visited"),
            GermanVerb(("besuche", "besucht", "besuchen"), "besucht"),
            PEOPLE,
            ("person", "relative", "building"),
        ),
        Verb(
            EnglishVerb("meet", "meets", "met", "met"),
            GermanVerb(("treffe", "trifft", "treffen"), "getroffen"),
            PEOPLE,
            PEOPLE,
        ),
        Verb(
            EnglishVerb("surprise", "surprises", "surprised", "surprised"),
            GermanVerb(("überrasche", "überrascht", "überraschen"), "überrascht"),
            ("animal", "food", "text", "thing", "clothing", "vehicle"),
            LIVING,
        ),
        Verb(
            EnglishVerb("call", "calls", "called", "called"),
            GermanVerb(("rufe", "ruft", "rufen"), "angerufen", "an"),
            PEOPLE,
            PEOPLE,
        ),
        Verb(
            EnglishVerb("invite", "invites", "invited", "invited"),
            GermanVerb(("lade", "lädt", "laden"), "eingeladen", "ein"),
            PEOPLE,
            PEOPLE,
        ),
        Verb(
            EnglishVerb("pick up", "picks up", "picked up", "picked up"),
            GermanVerb(("hole", "holt", "holen"), "abgeholt", "ab"),
            PEOPLE,
            ("person", "relative"),
        ),
        Verb(
            EnglishVerb("feed", "feeds", "fed", "fed"),
            GermanVerb(("füttere", "füttert", "füttern"), "gefüttert"),
            PEOPLE,
            ("animal",),
        ),
        Verb(
            EnglishVerb("draw", "draws", "drew", "drawn"),
            GermanVerb(("zeichne", "zeichnet", "zeichnen"), "gezeichnet"),
            PEOPLE,
            ("animal", "thing", "building", "landscape"),
        ),
        Verb(
            EnglishVerb("eat", "eats", "ate", "eaten"),
            GermanVerb(("esse", "isst", "essen"), "gegessen"),
            PEOPLE,
            ("food",),
        ),
        Verb(
            EnglishVerb("read", "reads", "read", "read"),
            GermanVerb(("lese", "liest", "lesen"), "gelesen"),
            PEOPLE,
            ("text",),
        ),
        Verb(
            EnglishVerb("write", "writes", "wrote", "written"),
            GermanVerb(("schreibe", "schreibt", "schreiben"), "geschrieben"),
            PEOPLE,
            ("text",),
        ),
        Verb(
            EnglishVerb("buy", "buys", "bought", "bought"),
            GermanVerb(("kaufe", "kauft", "kaufen"), "gekauft"),
            PEOPLE,
            ("food", "thing", "clothing", "vehicle"),
        ),
        Verb(
            EnglishVerb("need", "needs", "needed", "needed"),
            GermanVerb(("brauche", "braucht", "brauchen"), "gebraucht"),
            PEOPLE,
            ("thing", "clothing", "vehicle", "food"),
        ),
        Verb(
            EnglishVerb("carry", "carries", "carried", "carried"),
            GermanVerb(("trage", "trägt", "tragen"), "getragen"),
            PEOPLE,
            ("food", "thing"),
        ),
        Verb(
            EnglishVerb("forget", "forgets", "forgot", "forgotten"),
            GermanVerb(("vergesse", "vergisst", "vergessen"), "vergessen"),
            PEOPLE,
            ("text", "thing", "clothing"),
        ),
        Verb(
            EnglishVerb("lose", "loses", "lost", "lost"),
            GermanVerb(("verliere", "verliert", "verlieren"), "verloren"),
            PEOPLE,
            ("thing", "clothing"),
        ),
        Verb(
            EnglishVerb("steal", "steals", "stole", "stolen"),
            GermanVerb(("stehle", "stiehlt", "stehlen"), "gestohlen"),
            LIVING,
            ("food", "thing"),
        ),
        Verb(
            EnglishVerb("wash", "washes", "washed", "washed"),
            GermanVerb(("wasche", "wäscht", "waschen"), "gewaschen"),
            PEOPLE,
            ("clothing", "vehicle"),
        ),
        Verb(
            EnglishVerb("repair", "repairs", "repaired", "repaired"),
            GermanVerb(("repariere", "repariert", "reparieren"), "repariert"),
            PEOPLE,
            ("vehicle", "opening"),
        ),
        Verb(
            EnglishVerb("open", "opens", "opened", "opened"),
            GermanVerb(("mache", "macht", "machen"), "aufgemacht", "auf"),
            PEOPLE,
            ("opening",),
        ),
        Verb(
            EnglishVerb("close", "closes", "closed", "closed"),
            GermanVerb(("mache", "macht", "machen"), "zugemacht", "zu"),
            PEOPLE,
            ("opening",),
        ),
        Verb(
            EnglishVerb("put on", "puts on", "put on", "put on"),
            GermanVerb(("ziehe", "zieht", "ziehen"), "angezogen", "an"),
            PEOPLE,
            ("clothing",),
        ),
    ),
    "dative": (
        Verb(
            EnglishVerb("help", "helps", "helped", "helped"),
            GermanVerb(("helfe", "hilft", "helfen"), "geholfen"),
            PEOPLE,
            LIVING,
        ),
        Verb(
            EnglishVerb("thank", "thanks", "thanked", "thanked"),
            GermanVerb(("danke", "dankt", "danken"), "gedankt"),
            PEOPLE,
            PEOPLE,
        ),
        Verb(
            EnglishVerb("trust", "trusts", "trusted", "trusted"),
            GermanVerb(("vertraue", "vertraut", "vertrauen"), "vertraut"),
            LIVING,
            LIVING,
        ),
        Verb(
            EnglishVerb("answer", "answers", "answered", "answered"),
            GermanVerb(("antworte", "antwortet", "antworten"), "geantwortet"),
            PEOPLE,
            PEOPLE,
        ),
        Verb(
            EnglishVerb("follow", "follows", "followed", "followed"),
            GermanVerb(("folge", "folgt", "folgen"), "gefolgt", "", "sein"),
            LIVING,
            ("person", "relative", "animal", "vehicle"),
        ),
        Verb(
            EnglishVerb("listen to", "listens to", "listened to", "listened to"),
            GermanVerb(("höre", "hört", "hören"), "zugehört", "zu"),
            PEOPLE,
            PEOPLE,
        ),
    ),
    "ditransitive": (
        Verb(
            EnglishVerb("give", "gives", "gave", "given"),
            GermanVerb(("gebe", "gibt", "geben"), "gegeben"),
            PEOPLE,
            ("food", "text", "thing", "clothing"),
        ),
        Verb(
            EnglishVerb("show", "shows", "showed", "shown"),
            GermanVerb(("zeige", "zeigt", "zeigen"), "gezeigt"),
            PEOPLE,
            ("animal", "text", "thing", "vehicle", "building"),
        ),
        Verb(
            EnglishVerb("send", "sends", "sent", "sent"),
            GermanVerb(("schicke", "schickt", "schicken"), "geschickt"),
            PEOPLE,
            ("text", "thing", "clothing"),
        ),
        Verb(
            EnglishVerb("bring", "brings", "brought", "brought"),
            GermanVerb(("bringe", "bringt", "bringen"), "gebracht"),
            PEOPLE,
            ("food", "text", "thing"),
        ),
        Verb(
            EnglishVerb("buy", "buys", "bought", "bought"),
            GermanVerb(("kaufe", "kauft", "kaufen"), "gekauft"),
            PEOPLE,
            ("food", "thing", "clothing", "vehicle"),
        ),
        Verb(
            EnglishVerb("sell", "sells", "sold", "sold"),
            GermanVerb(("verkaufe", "verkauft", "verkaufen"), "verkauft"),
            PEOPLE,
            ("food", "thing", "vehicle"),
        ),
        Verb(
            EnglishVerb("lend", "lends", "lent", "lent"),
            GermanVerb(("leihe", "leiht", "leihen"), "geliehen"),
            PEOPLE,
            ("thing", "clothing", "vehicle"),
        ),
        Verb(
            EnglishVerb("offer", "offers", "offered", "offered"),
            GermanVerb(("biete", "bietet", "bieten"), "angeboten", "an"),
            PEOPLE,
            ("food", "thing"),
        ),
        Verb(
            EnglishVerb("read", "reads", "read", "read"),
            GermanVerb(("lese", "liest", "lesen"), "vorgelesen", "vor"),
            PEOPLE,
            ("text",),
        ),
    ),
    "prepositional": (
        Verb(
            EnglishVerb("wait", "waits", "waited", "waited"),
            GermanVerb(("warte", "wartet", "warten"), "gewartet"),
            PEOPLE,
            ("person", "relative", "vehicle"),
            Preposition("for", "auf", "accusative"),
        ),
        Verb(
            EnglishVerb("take care", "takes care", "took care", "taken care"),
            GermanVerb(("passe", "passt", "passen"), "aufgepasst", "auf"),
            PEOPLE,
            LIVING,
            Preposition("of", "auf", "accusative"),
        ),
        Verb(
            EnglishVerb("play", "plays", "played", "played"),
            GermanVerb(("spiele", "spielt", "spielen"), "gespielt"),
            LIVING,
            LIVING,
            Preposition("with", "mit", "dative"),
        ),
        Verb(
            EnglishVerb("dance", "dances", "danced", "danced"),
            GermanVerb(("tanze", "tanzt", "tanzen"), "getanzt"),
            PEOPLE,
            PEOPLE,
            Preposition("with", "mit", "dative"),
        ),
        Verb(
            EnglishVerb("talk", "talks", "talked", "talked"),
            GermanVerb(("spreche", "spricht", "sprechen"), "gesprochen"),
            PEOPLE,
            PEOPLE,
            Preposition("to", "mit", "dative"),
        ),
        Verb(
            EnglishVerb("dream", "dreams", "dreamed", "dreamed"),
            GermanVerb(("träume", "träumt", "träumen"), "geträumt"),
            PEOPLE,
            ("food", "vehicle", "building", "animal"),
            Preposition("of", "von", "dative"),
        ),
    ),
}

# Verbs that take a clause as their object.
CLAUSAL_VERBS = (
    Verb(
        EnglishVerb("know", "knows", "knew", "known"),
        GermanVerb(("weiß", "weiß", "wissen"), "gewusst"),
        PEOPLE,
        conjunction=THAT,
    ),
    Verb(
        EnglishVerb("believe", "believes", "believed", "believed"),
        GermanVerb(("glaube", "glaubt", "glauben"), "geglaubt"),
        PEOPLE,
        conjunction=THAT,
    ),
    Verb(
        EnglishVerb("say", "says", "said", "said"),
        GermanVerb(("sage", "sagt", "sagen"), "gesagt"),
        PEOPLE,
        conjunction=THAT,
    ),
    Verb(
        EnglishVerb("think", "thinks", "thought", "thought"),
        GermanVerb(("denke", "denkt", "denken"), "gedacht"),
        PEOPLE,
        conjunction=THAT,
    ),
    Verb(
        EnglishVerb("ask", "asks", "asked", "asked"),
        GermanVerb(("frage", "fragt", "fragen"), "gefragt"),
        PEOPLE,
        conjunction=WHETHER,
    ),
)
