package limits

// Paths of the pages and of the actions.
const (
	path       = "/limits"
	setPath    = "/limits/set"
	deletePath = "/limits/delete"
)
