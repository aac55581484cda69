package client

// Stats counts the writes of a client since New.
type Stats struct {
	Writes  uint64 // all writes
	Offered uint64 // writes that were offered to all voters at once
	Won     uint64 // offered writes that a superquorum of the voters decided, in one round trip
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats { return c.writer.table.counted() }
