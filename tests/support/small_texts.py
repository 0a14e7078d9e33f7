"""The texts of the small data set, which no import of the product delays."""

TEXTS = {
    "apple": "apples grow on trees and are red or green",
    "pear": "pears grow on trees and are green",
    "car": "cars drive on roads and have four wheels",
    "train": "trains drive on rails and have many wheels",
    "boat": "boats swim on water and have no wheels",
    "fish": "fish swim in water and have fins",
}
QUERIES = [
    ("q-fruit", "fruit that grows on trees", ["apple", "pear"]),
    ("q-wheels", "things with wheels", ["train", "car", "boat"]),
    ("q-swim", "what can swim in water", ["fish", "boat"]),
    ("q-rails", "rails", ["train"]),
    ("q-green", "green trees", ["pear", "apple"]),
    ("q-drive", "drive on the roads", ["car", "train"]),
]
