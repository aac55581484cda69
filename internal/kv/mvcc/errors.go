package mvcc

import "errors"

// ErrCorruptRow means that a row of the engine does not decode: the store is damaged.
var ErrCorruptRow = errors.New("mvcc: corrupt row")
