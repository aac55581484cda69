package history

// doubt decides which answers may be trusted. After a loss of power was simulated, what the old processes still answer
// says nothing of what the disks hold.
type doubt struct {
	lost    bool
	resumed int64
}

// holds reports whether an operation that began at call, and is answered now, may be taken for one without an answer.
func (d *doubt) holds(call int64) bool { return d.lost || call < d.resumed }
