package consensus

import "errors"

// ErrCorrupt is returned by every decoder for bytes that no encoder of this package wrote.
var ErrCorrupt = errors.New("consensus: corrupt encoding")
