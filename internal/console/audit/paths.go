package audit

// Paths of the pages and of the actions.
const (
	path     = "/audit"
	rulePath = "/audit/rule"
)
