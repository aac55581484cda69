package k8s

// object is what an API server's cache knows of a key. Its mutations follow each other.
type object struct {
	resource resource
	number   int
	key      string
	revision int64         // zero: it is not there
	unsure   bool          // a request's outcome is unknown
	tail     chan struct{} // closed when the last mutation that was begun has ended
}

// objects are the leases of nodes and the pods that are not yet to be deleted. They belong to the goroutine of the schedule.
type objects struct {
	leases []*object
	pods   map[int]*object
}

func (o *objects) adopt(nodes, running int, listed [resources]map[string]state) {
	there := func(r resource, number int) *object {
		key := r.key(number)
		return &object{resource: r, number: number, key: key, revision: listed[r][key].modified}
	}
	for number := range nodes {
		o.leases = append(o.leases, there(leases, number))
	}
	o.pods = map[int]*object{}
	for number := range running {
		o.pods[number] = there(pods, number)
	}
}

// of returns the object of a mutation, or none if it is a pod's that is no longer there, or not yet.
func (o *objects) of(m mutation) *object {
	switch {
	case m.class == Lease:
		return o.leases[m.object]
	case m.class == Event:
		return &object{resource: events, number: m.object, key: events.key(m.object)}
	case m.step == created:
		o.pods[m.object] = &object{resource: pods, number: m.object, key: pods.key(m.object)}
	}
	found := o.pods[m.object]
	if m.step == deleted {
		delete(o.pods, m.object)
	}
	return found
}
