"""ELMo in a scikit-learn pipeline.

`ElmoVectorizer` is a transformer like `TfidfVectorizer`: texts in, one vector per text out. Here
a logistic regression over it tells questions about travel from questions about food, and is
compared with word counts.

    pip install 'elmokit[sklearn]'
    python examples/sklearn_classifier.py
"""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from elmokit.integrations.sklearn import ElmoVectorizer

TRAVEL = """
When does the next train leave ? | How far is the airport ? | Which bus goes to the museum ?
Is the road to the coast open ? | Where can I buy a ticket ? | Does this ferry take cars ?
How long is the flight ? | Can we reach the village on foot ? | Who drives us to the station ?
Are there seats on the night train ? | What does a taxi cost ? | Where is platform nine ?
"""
FOOD = """
How long must the soup boil ? | Is there garlic in the sauce ? | Which cheese is on the pizza ?
Can I have the bread without butter ? | Where do you keep the salt ? | Does this cake contain nuts ?
What is for dinner ? | How much sugar is in the jam ? | Who baked the apple pie ?
Are the tomatoes ripe ? | Do you eat fish ? | When is the rice done ?
"""
texts = [
    t.strip() for part in (TRAVEL, FOOD) for t in part.replace("\n", "|").split("|") if t.strip()
]
labels = ["travel"] * 12 + ["food"] * 12

for name, features in [("word counts", TfidfVectorizer()), ("ELMo", ElmoVectorizer())]:
    pipeline = make_pipeline(features, LogisticRegression(max_iter=1000))
    scores = cross_val_score(pipeline, texts, labels, cv=6)
    print(f"{name:12} accuracy {scores.mean():.2f}")
