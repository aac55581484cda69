package stores

// turn says which goroutine may touch a machine's disk: the simulation, which holds it except while it calls an engine, or one
// of Pebble's goroutines, for one call of the file system.
type turn chan struct{}

// newTurn returns a turn that the simulation holds.
func newTurn() turn {
	t := make(turn, 1)
	t <- struct{}{}
	return t
}

// take waits for the turn and keeps it until done is called.
func (t turn) take() (done func()) {
	t <- struct{}{}
	return func() { <-t }
}

// yield gives the turn away until done is called.
func (t turn) yield() (done func()) {
	<-t
	return func() { t <- struct{}{} }
}
