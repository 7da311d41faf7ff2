-- La búsqueda: lo que se recuerda, de quién es el turno, quién descansa y cuánto se ha gastado.
-- Los tiempos son segundos desde 1970.
CREATE TABLE search_cache (
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    stored_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT;

CREATE INDEX search_cache_by_age ON search_cache (stored_at);

-- holder: quién está preguntando ahora, hasta lease_until como mucho; next_at: cuándo puede el siguiente.
CREATE TABLE search_turn (
    service TEXT PRIMARY KEY,
    holder TEXT,
    lease_until REAL NOT NULL,
    next_at REAL NOT NULL,
    interval REAL NOT NULL
) STRICT;

-- strikes: bloqueos seguidos.
CREATE TABLE search_pause (
    service TEXT PRIMARY KEY,
    until REAL NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    strikes INTEGER NOT NULL
) STRICT;

CREATE TABLE search_budget (
    service TEXT NOT NULL,
    month TEXT NOT NULL,
    spent INTEGER NOT NULL,
    PRIMARY KEY (service, month)
) STRICT;
