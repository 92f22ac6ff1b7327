"""Names and things that documents are about; the splits share none of them."""

_FIRST_NAMES = (
    "Amara", "Boris", "Celia", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Lars",
    "Mina", "Noor", "Oscar", "Priya", "Quentin", "Rosa", "Selma", "Tomas", "Uma", "Viktor", "Wanda", "Yusuf",
)  # fmt: skip
_LAST_NAMES = (
    "Abbott", "Bergstrom", "Castillo", "Dubois", "Eriksen", "Fontana", "Gruber", "Hansen", "Ivanova",
    "Jensen", "Kowalski", "Lindqvist", "Marchetti", "Novak", "Okafor", "Petersen", "Quinn", "Rossi",
    "Schneider", "Tanaka", "Ueda", "Vargas", "Weber", "Zhang",
)  # fmt: skip
_CITIES = (
    "Aarhus", "Bergen", "Cordoba", "Dresden", "Evora", "Florence", "Ghent", "Haarlem", "Innsbruck", "Jaen",
    "Kassel", "Lyon", "Malmo", "Nantes", "Ostrava", "Porto",
)  # fmt: skip
_STREETS = (
    "Mill Lane", "Station Road", "Harbour Street", "Chestnut Avenue", "Castle Hill", "Garden Square",
    "Orchard Way", "River Walk", "Church Street", "Market Place",
)  # fmt: skip
_COMPANIES = (
    "Northwind Supplies", "Bluefin Hardware", "Cobalt Office", "Driftwood Interiors", "Evergreen Tools",
    "Fernhill Stationers", "Granite Works", "Harbour Lighting", "Ironbridge Parts", "Juniper Furniture",
)  # fmt: skip
_GOODS = (
    "Desk lamp", "Paper A4", "Stapler", "Office chair", "Whiteboard", "Cable 3 m", "Toner black", "Envelopes",
    "Hole punch", "Filing box", "Keyboard", "Wall clock", "Scissors", "Notebook", "Bookshelf", "Power strip",
    "Coat rack", "Marker set", "Waste bin", "Door mat",
)  # fmt: skip
_PLACES = (
    "City Library", "Natural History Museum", "Botanical Garden", "Swimming Hall", "Observatory",
    "Town Archive", "Maritime Museum", "Art Gallery", "Puppet Theatre", "Aquarium",
)  # fmt: skip
_CLUBS = (
    "Rowing Club", "Chess Circle", "Hiking Association", "Photo Society", "Tennis Club", "Choir",
    "Sailing School", "Climbing Hall",
)  # fmt: skip


class Words:
    """The words of one split.

    Args:
        split: ``test`` takes every second word, every other split the rest.
    """

    def __init__(self, split: str) -> None:
        start = 1 if split == "test" else 0
        self.first_names = _FIRST_NAMES[start::2]
        self.last_names = _LAST_NAMES[start::2]
        self.cities = _CITIES[start::2]
        self.streets = _STREETS[start::2]
        self.companies = _COMPANIES[start::2]
        self.goods = _GOODS[start::2]
        self.places = _PLACES[start::2]
        self.clubs = _CLUBS[start::2]
