package k8s

import "time"

// Class is a kind of request whose latency is reported by itself.
type Class int

// The mutations come first.
const (
	Lease  Class = iota // a node renews its lease
	Pod                 // a pod is created, its status updated, or deleted
	Event               // an event is created on a shared lease
	Page                // one page of a list of pods
	List                // such a list as a whole
	Stream              // all pods by RangeStream
	Check               // an API server compares a cache with the store
	classes
)

// Mutations is how many of the classes change something.
const Mutations = int(Event) + 1

func (c Class) String() string {
	return [classes]string{"lease renewal", "pod change", "event", "list page", "paged list", "streamed list", "cache check"}[c]
}

// A node renews its lease every ten seconds; a pod per hundred nodes is born each second, and one dies. A cycle is one of
// those: a pod of each step of a pod's life, its events, and the renewals of that time.
const (
	renewalsPerCycle = 10
	stepsPerCycle    = 6
	eventsPerCycle   = 6
	perCycle         = renewalsPerCycle + stepsPerCycle + eventsPerCycle
	cyclesPerNode    = 0.01 // a second
)

// NaturalRate is the mutations a second of so many nodes.
func NaturalRate(nodes int) float64 { return float64(nodes) * cyclesPerNode * perCycle }

// order spreads the mutations of a cycle over its time: which step of a pod's life, or one of these.
const (
	renewal = -1
	notice  = -2 // an event
)

var order = [perCycle]int{
	renewal, 0, notice, renewal, 1, renewal, notice, renewal, 2, notice, renewal,
	renewal, 3, notice, renewal, 4, renewal, notice, renewal, 5, notice, renewal,
}

// The steps of a pod's life.
const (
	created = iota
	scheduled
	starting
	running
	terminating
	deleted
)

// mutation is what is due at some time. The object is the number of a node, of a pod or of an event.
type mutation struct {
	class  Class
	step   int // of a pod
	object int
}

// schedule says what the i-th mutation is. There are always as many pods as at the beginning, numbers 0 to pods-1: the oldest
// is deleted when a new one is created.
type schedule struct{ nodes, pods int }

// at returns mutation i, where a pod's steps are so many cycles apart.
func (s schedule) at(i, apart int) mutation {
	cycle, place := i/perCycle, i%perCycle
	apart = max(1, min(apart, s.pods/8))
	switch what := order[place]; what {
	case renewal:
		return mutation{class: Lease, object: s.node(cycle*renewalsPerCycle + before(place, renewal))}
	case notice:
		return mutation{class: Event, object: cycle*eventsPerCycle + before(place, notice)}
	case terminating:
		return mutation{class: Pod, step: what, object: cycle + apart}
	case deleted:
		return mutation{class: Pod, step: what, object: cycle}
	default:
		return mutation{class: Pod, step: what, object: s.pods + cycle - what*apart}
	}
}

// before counts how often something is due in a cycle before a place.
func before(place, what int) (n int) {
	for _, w := range order[:place] {
		if w == what {
			n++
		}
	}
	return n
}

// node takes all nodes in turn, not in the order of their names.
func (s schedule) node(i int) int {
	stride := 7919
	for gcd(stride, s.nodes) != 1 {
		stride += 2
	}
	return i % s.nodes * stride % s.nodes
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// due is when the i-th mutation of a load is due after its begin.
func due(i int, rate float64) time.Duration {
	return time.Duration(float64(i) / rate * float64(time.Second))
}
