package observed

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/doctor"
)

// Answer is what members observe.
type Answer struct {
	*quoratepb.Collected
	// Config is the latest configuration that a member which answered knows; never nil.
	Config *quoratepb.ObservedConfig
	// Members are those of the configuration, by name, and then others that were asked.
	Members []*Member
	// Leader is the member that leads, of the highest term that a member which answered knows; nil: none is known.
	Leader *Member
}

// Member is one member, as far as it is known. Its fields may be nil, as may what they hold; protobuf reads nil as zero.
type Member struct {
	ID   uint64
	Name string // never empty
	// Known is its place in the configuration; nil: it has none.
	Known *quoratepb.ObservedMember
	// Asked is how it was asked; nil: it was not.
	Asked *quoratepb.CollectedMember
	// Says is its own observation; nil: it did not answer.
	Says *quoratepb.Observation
	// Followed is what the leader knows of it; nil: nothing.
	Followed *quoratepb.ObservedPeer
}

// Ask asks the member that shows the console for the observations of all.
func Ask(ctx context.Context, r *page.Request) (*Answer, error) {
	api := quoratepb.NewDoctorClient(r.Conn)
	all, err := api.Collect(ctx, &quoratepb.CollectRequest{})
	if status.Code(err) == codes.Unimplemented {
		all, err = alone(ctx, api, r)
	}
	if err != nil {
		return nil, err
	}
	return Of(all), nil
}

// alone is what one member tells, in the form of what all tell.
func alone(ctx context.Context, api quoratepb.DoctorClient, r *page.Request) (*quoratepb.Collected, error) {
	o, err := api.Observe(ctx, &quoratepb.ObserveRequest{})
	if err != nil {
		return nil, err
	}
	return &quoratepb.Collected{AtMs: r.Now.UnixMilli(), Alone: true, Members: []*quoratepb.CollectedMember{{
		Id: o.GetMemberId(), Name: o.GetName(), AskedMs: r.Now.UnixMilli(), Observation: o,
	}}}, nil
}

// Of puts side by side what was collected; nil: nothing.
func Of(all *quoratepb.Collected) *Answer {
	if all == nil {
		all = &quoratepb.Collected{}
	}
	a := &Answer{Collected: doctor.Trimmed(all)}
	a.Config = doctor.Latest(a.Collected)
	for _, known := range a.Config.GetMembers() {
		if a.Member(known.GetId()) == nil {
			a.Members = append(a.Members, &Member{ID: known.GetId(), Known: known})
		}
	}
	for _, asked := range a.GetMembers() {
		m := a.Member(asked.GetId())
		if m == nil || m.Asked != nil {
			m = &Member{ID: asked.GetId()}
			a.Members = append(a.Members, m)
		}
		m.Asked = asked
		if asked.GetFault() == "" {
			m.Says = asked.GetObservation()
		}
	}
	for _, m := range a.Members {
		m.Name = cmp.Or(m.Asked.GetName(), m.Known.GetName(), m.Says.GetName(), Hex(m.ID))
		core := m.Says.GetCore()
		leads := m.Says != nil && m.ID != 0 && core.GetLeader() == m.ID
		if leads && (a.Leader == nil || core.GetTerm() > a.Leader.Says.GetCore().GetTerm()) {
			a.Leader = m
		}
	}
	a.follow()
	slices.SortStableFunc(a.Members, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(outside(a), outside(b)), cmp.Compare(a.Name, b.Name))
	})
	return a
}

// follow gives members what the leader knows of them.
func (a *Answer) follow() {
	if a.Leader == nil {
		return
	}
	for _, peer := range a.Leader.Says.GetPeers() {
		if m := a.Member(peer.GetId()); m != nil && peer.GetFollowed() {
			m.Followed = peer
		}
	}
}

// outside puts members without a place in the configuration behind the others.
func outside(m *Member) int {
	if m.Known == nil {
		return 1
	}
	return 0
}

// Member finds a member by its id; nil: there is none. An id of zero is none.
func (a *Answer) Member(id uint64) *Member {
	at := slices.IndexFunc(a.Members, func(m *Member) bool { return m.ID == id && id != 0 })
	if at < 0 {
		return nil
	}
	return a.Members[at]
}

// NameOf is how the member of an id is called.
func (a *Answer) NameOf(id uint64) string {
	if m := a.Member(id); m != nil {
		return m.Name
	}
	return Hex(id)
}

// Word is how a link or a command names a member: by its name if no other one has it, else by its id.
func (a *Answer) Word(m *Member) string {
	for _, other := range a.Members {
		if other != m && other.Name == m.Name {
			return Hex(m.ID)
		}
	}
	return m.Name
}

// Answered is how many members told what they observe.
func (a *Answer) Answered() (n int) {
	for _, m := range a.Members {
		if m.Says != nil {
			n++
		}
	}
	return n
}

// Up reports whether a member takes part: the leader's word counts more than its own, and that more than silence.
func (a *Answer) Up(m *Member) bool {
	switch {
	case m == a.Leader:
		return true
	case m.Followed != nil:
		return m.Followed.GetActive()
	}
	return m.Says != nil
}

// Hex is a member's id as commands write it.
func Hex(id uint64) string { return strconv.FormatUint(id, 16) }
