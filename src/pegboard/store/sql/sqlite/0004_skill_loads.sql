-- Skills that were loaded. Columns are named as the fields of SkillLoad.

CREATE TABLE skill_loads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    skill TEXT NOT NULL,
    file TEXT NOT NULL,
    conversation TEXT NOT NULL,
    caller TEXT NOT NULL,
    tokens INTEGER NOT NULL
);

CREATE INDEX skill_loads_by_time ON skill_loads (at);
CREATE INDEX skill_loads_by_skill ON skill_loads (skill, at);
