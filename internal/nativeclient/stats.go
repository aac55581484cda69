package nativeclient

// Stats counts the writes of a client.
type Stats struct {
	Writes  uint64 // all writes
	Offered uint64 // writes that were offered to all voters at once
	Won     uint64 // offered writes that a superquorum of the voters decided, in one round trip
}

// Stats returns the counts so far.
func (t *Table) Stats() Stats { return t.stats }
