package encryption

// Paths of the pages and of the actions.
const (
	path       = "/encryption"
	rotatePath = "/encryption/rotate"
)
