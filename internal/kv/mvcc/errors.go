package mvcc

import "errors"

// ErrCorruptRow means that a row of the engine does not decode: the store is damaged.
var ErrCorruptRow = errors.New("mvcc: corrupt row")

// ErrEnded means that long work was cut short because the store is being closed, or replaced by a snapshot.
var ErrEnded = errors.New("mvcc: the store is being closed or replaced by a snapshot: try again")
