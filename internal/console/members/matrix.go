package members

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// mostSquare is how many members the matrix has.
const mostSquare = 16

// matrixView is the matrix: a row for each member that measured, a column for each that was measured.
type matrixView struct {
	Names   []string
	Rows    []matrixRow
	Left    int
	Waiting []string // members that have not started
	Median  string   // empty: nothing was measured
	Floor   string   // below which a round trip is near; empty: not known
	Alone   bool
}

// matrixRow is what one member measured.
type matrixRow struct {
	Name, To string
	Silent   string // why it has no values; empty: it has
	Trips    []roundTrip
}

// roundTrip is one round trip.
type roundTrip struct {
	Text  string
	Note  string // in words, how it is beside the others
	Look  string // near, mid or far; bad: there is no link; empty: nothing is known
	Title string
}

// The factors of the median up to which a round trip is near, and up to which it is not yet far.
const (
	nearTo = 1.5
	midTo  = 3.0
	// floorOf is the part of a heartbeat interval below which a round trip is near, however short the others are.
	floorOf = 50
)

func matrix(k *known, _ *page.Request) any {
	s := &matrixView{Alone: k.All.GetAlone()}
	var members []*observed.Member
	for _, m := range k.All.Members {
		switch {
		case m.Known == nil:
		case !m.Known.GetStarted():
			s.Waiting = append(s.Waiting, m.Name)
		default:
			members = append(members, m)
		}
	}
	s.Waiting, s.Left = s.Waiting[:min(len(s.Waiting), mostSquare)], max(0, len(members)-mostSquare)
	members = members[:len(members)-s.Left]
	median, floor := medianOf(members), floorOfAll(members)
	if median > 0 {
		s.Median = micros(median)
	}
	if floor > 0 {
		s.Floor = micros(floor)
	}
	for _, m := range members {
		s.Names = append(s.Names, m.Name)
		one := matrixRow{Name: m.Name, To: "/members?member=" + observed.Hex(m.ID)}
		if m.Says == nil {
			one.Silent = "did not answer"
			if m.Asked == nil {
				one.Silent = "was not asked"
			}
		}
		for _, other := range members {
			one.Trips = append(one.Trips, tripOf(m, other, median, floor))
		}
		s.Rows = append(s.Rows, one)
	}
	return s
}

// medianOf is the median of all round trips that were measured, in microseconds; zero: none was.
func medianOf(members []*observed.Member) int64 {
	var all []int64
	for _, m := range members {
		for _, p := range m.Says.GetPeers() {
			if p.GetConnected() && p.GetRoundTripUs() > 0 {
				all = append(all, p.GetRoundTripUs())
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// floorOfAll is below which a round trip is near, in microseconds.
func floorOfAll(members []*observed.Member) (floor int64) {
	for _, m := range members {
		floor = max(floor, m.Says.GetHeartbeatMs()*1000/floorOf)
	}
	return floor
}

// tripOf is what a member measured to another one.
func tripOf(from, to *observed.Member, median, floor int64) roundTrip {
	if from == to {
		return roundTrip{Text: "·", Title: "the member itself"}
	}
	at := slices.IndexFunc(from.Says.GetPeers(), func(p *quoratepb.ObservedPeer) bool { return p.GetId() == to.ID })
	if at < 0 {
		return roundTrip{Text: unknown, Title: from.Name + " did not tell"}
	}
	p, title := from.Says.GetPeers()[at], from.Name+" to "+to.Name
	switch us := p.GetRoundTripUs(); {
	case !p.GetConnected():
		return roundTrip{Text: "no link", Note: p.GetFault(), Look: "bad", Title: title + ": no connection stands"}
	case us == 0:
		return roundTrip{Text: unknown, Title: title + ": nothing was measured in the last minute"}
	default:
		text, factor := micros(us), float64(us)/float64(median)
		one := roundTrip{Text: text, Look: "near", Title: title + ": " + text}
		switch {
		case factor <= nearTo || us < floor:
		case factor <= midTo:
			one.Look, one.Note = "mid", fmt.Sprintf("%.1f × median", factor)
		default:
			one.Look, one.Note = "far", fmt.Sprintf("%.0f × median", factor)
		}
		return one
	}
}
