package memory

// ProxyShares are the bounds of a gRPC proxy's parts, in bytes.
type ProxyShares struct {
	Limit int64 // of the process
	Heap  int64 // of what the Go runtime takes from the system

	Clients Clients
}

// DivideProxy says what each part of a gRPC proxy gets that may have limit bytes; a limit below MinLimit counts as that. The
// memory that clients hold gets half: a proxy has no store, no log and no caches. The rest is garbage, and messages from
// members that are not there in full.
func DivideProxy(limit int64) ProxyShares {
	s := Divide(limit)
	unit := (s.Limit - program) / units
	return ProxyShares{
		Limit:   s.Limit,
		Heap:    s.Heap,
		Clients: Clients{Total: 32 * unit, Renewals: unit, Metrics: unit},
	}
}

// Process is what Govern needs to know of the whole.
func (s ProxyShares) Process() Shares { return Shares{Limit: s.Limit, Heap: s.Heap} }
