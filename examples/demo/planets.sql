-- The planets of the solar system and their large moons: facts, rounded, free of copyright.
CREATE TABLE planets (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,              -- rocky, gas giant, ice giant
  radius_km REAL NOT NULL,         -- mean
  mass_earths REAL NOT NULL,
  distance_au REAL NOT NULL,       -- mean, from the sun
  year_days REAL NOT NULL,         -- one orbit, in earth days
  day_hours REAL NOT NULL          -- one rotation against the stars; negative: retrograde
);
INSERT INTO planets VALUES
  ('Mercury', 'rocky',      2439.7,  0.0553, 0.387,    87.97, 1407.6),
  ('Venus',   'rocky',      6051.8,  0.815,  0.723,   224.70, -5832.5),
  ('Earth',   'rocky',      6371.0,  1.0,    1.000,   365.26,   23.93),
  ('Mars',    'rocky',      3389.5,  0.107,  1.524,   686.98,   24.62),
  ('Jupiter', 'gas giant', 69911.0, 317.8,   5.203,  4332.59,    9.93),
  ('Saturn',  'gas giant', 58232.0,  95.2,   9.537, 10759.22,   10.66),
  ('Uranus',  'ice giant', 25362.0,  14.5,  19.191, 30688.5,   -17.24),
  ('Neptune', 'ice giant', 24622.0,  17.1,  30.069, 60182.0,    16.11);

CREATE TABLE moons (
  name TEXT PRIMARY KEY,
  planet TEXT NOT NULL REFERENCES planets (name),
  radius_km REAL NOT NULL,         -- mean
  distance_km REAL NOT NULL,       -- mean, from the planet
  orbit_days REAL NOT NULL,
  discovered INTEGER,              -- year; null: known since antiquity
  discoverer TEXT
);
INSERT INTO moons VALUES
  ('Moon',      'Earth',   1737.4,  384400, 27.322, NULL, NULL),
  ('Phobos',    'Mars',      11.3,    9376,  0.319, 1877, 'Asaph Hall'),
  ('Deimos',    'Mars',       6.2,   23463,  1.262, 1877, 'Asaph Hall'),
  ('Io',        'Jupiter', 1821.6,  421700,  1.769, 1610, 'Galileo Galilei'),
  ('Europa',    'Jupiter', 1560.8,  670900,  3.551, 1610, 'Galileo Galilei'),
  ('Ganymede',  'Jupiter', 2634.1, 1070400,  7.155, 1610, 'Galileo Galilei'),
  ('Callisto',  'Jupiter', 2410.3, 1882700, 16.689, 1610, 'Galileo Galilei'),
  ('Mimas',     'Saturn',   198.2,  185540,  0.942, 1789, 'William Herschel'),
  ('Enceladus', 'Saturn',   252.1,  238040,  1.370, 1789, 'William Herschel'),
  ('Tethys',    'Saturn',   531.1,  294670,  1.888, 1684, 'Giovanni Cassini'),
  ('Dione',     'Saturn',   561.4,  377420,  2.737, 1684, 'Giovanni Cassini'),
  ('Rhea',      'Saturn',   763.8,  527070,  4.518, 1672, 'Giovanni Cassini'),
  ('Titan',     'Saturn',  2574.7, 1221870, 15.945, 1655, 'Christiaan Huygens'),
  ('Iapetus',   'Saturn',   734.5, 3560840, 79.322, 1671, 'Giovanni Cassini'),
  ('Miranda',   'Uranus',   235.8,  129900,  1.413, 1948, 'Gerard Kuiper'),
  ('Ariel',     'Uranus',   578.9,  190900,  2.520, 1851, 'William Lassell'),
  ('Umbriel',   'Uranus',   584.7,  266000,  4.144, 1851, 'William Lassell'),
  ('Titania',   'Uranus',   788.4,  436300,  8.706, 1787, 'William Herschel'),
  ('Oberon',    'Uranus',   761.4,  583500, 13.463, 1787, 'William Herschel'),
  ('Triton',    'Neptune', 1353.4,  354759,  5.877, 1846, 'William Lassell');
