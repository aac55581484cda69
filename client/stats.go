package client

// Stats counts what the client wrote since it was made.
type Stats struct {
	Writes  uint64 // that were asked for
	Offered uint64 // to all voters at once
	Won     uint64 // of those that were offered, answered by a superquorum of the voters, in one round trip
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats { return c.writer.table.counted() }

func (t *table) counted() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}
