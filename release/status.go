package main

// The exit statuses.
const (
	statusFailed = 1 // it could not be done; of verify: a file differs
	statusUsage  = 2 // the command line is wrong; of verify: a file could not be checked
)

// usage is an error of the command line.
type usage struct{ error }

// verdict is an exit status that was explained already.
type verdict int

func (v verdict) Error() string { return "verified" }
