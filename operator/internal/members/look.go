package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Look asks the members of the cluster with an id; 0: it is not known yet. Leaders of an epoch that is older than the newest
// one that is known are none: they were left out by a recovery, also if they still are a majority among themselves.
func (g *Group) Look(ctx context.Context, cluster uint64, newest decide.Epoch) *View {
	v := &View{}
	described, answered, err := each(ctx, g, func(ctx context.Context, conn *grpc.ClientConn) (*quoratepb.Cluster, error) {
		answer, err := quoratepb.NewMembershipClient(conn).Describe(ctx, &quoratepb.DescribeRequest{})
		if err != nil {
			return nil, err
		}
		return believable(answer.GetCluster())
	})
	v.Err = err
	var best int
	if best, err = bestOf(g.seats, described, answered, cluster, newest); best < 0 {
		v.Refused, v.Err = errors.Is(v.Err, errRefused), errors.Join(v.Err, err)
		v.Answers = g.answers(ctx, cluster)
		return v
	}
	conn := g.conns[best]
	g.first = best
	asking, done := g.asking(ctx)
	defer done()
	asking, err = g.login.with(asking, conn)
	if err != nil {
		v.Err = err
		return v
	}
	jobs, err := quoratepb.NewMembershipClient(conn).ListJobs(asking, &quoratepb.ListJobsRequest{})
	if err == nil {
		v.Jobs, err = unended(jobs.GetJobs())
	}
	if err != nil {
		v.Err = fmt.Errorf("the jobs of the cluster: %w", said{err})
		return v
	}
	v.Described, v.By = described[best], g.seats[best].Member
	v.Others = othersOf(g.seats, described, answered, best, cluster, newest)
	collected, err := g.collect(asking, conn, v.Described)
	if err != nil {
		text := "the doctor could not be asked: " + said{err}.Error()
		v.Findings = []doctor.Finding{{Code: doctor.NotObserved, Severity: doctor.SlowerThanIs, Sentence: text,
			Cure: "quorate doctor"}}
		v.Apart = []string{text} // nobody knows who reaches whom, nor what a build causes
		return v
	}
	v.Findings, v.Apart = doctor.Judge(collected), Apart(v.Described, collected)
	return v
}

// collect returns what members observe. One asks the others over links between members; those of release 1.0 neither ask nor
// answer so, and are asked here.
func (g *Group) collect(ctx context.Context, conn *grpc.ClientConn, d *quoratepb.Cluster) (*quoratepb.Collected, error) {
	c, err := quoratepb.NewDoctorClient(conn).Collect(ctx, &quoratepb.CollectRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		c = &quoratepb.Collected{AtMs: time.Now().UnixMilli()}
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(c.GetMembers(), isUntold):
		return c, nil
	}
	for _, m := range c.GetMembers() {
		m.AskedMs = 0 // by another clock than that of this process: nobody can compare those that it asks itself with these
	}
	got, answered, _ := each(ctx, g, observe)
	for _, i := range answered {
		m := got[i]
		if m.GetObservation().GetClusterId() != d.GetClusterId() || m.GetName() != g.seats[i].Member {
			continue
		}
		at := slices.IndexFunc(c.Members, func(known *quoratepb.CollectedMember) bool { return known.GetId() == m.GetId() })
		switch {
		case at >= 0 && isUntold(c.Members[at]):
			c.Members[at] = m
		case at >= 0 && c.Members[at].GetObservation() != nil:
			c.Members[at] = m // of one clock with the others
		case at < 0 && slices.ContainsFunc(d.GetMembers(), func(of *quoratepb.Member) bool { return of.GetId() == m.GetId() }):
			c.Members = append(c.Members, m)
		}
	}
	return c, nil
}

// isUntold tells whether a member's build does not tell other members what it observes.
func isUntold(m *quoratepb.CollectedMember) bool { return m.GetFault() == doctor.FaultUnsupported }

// observe asks a member itself.
func observe(ctx context.Context, conn *grpc.ClientConn) (*quoratepb.CollectedMember, error) {
	begun := time.Now()
	o, err := quoratepb.NewDoctorClient(conn).Observe(ctx, &quoratepb.ObserveRequest{})
	if err != nil {
		return nil, err
	}
	took := time.Since(begun)
	return &quoratepb.CollectedMember{Id: o.GetMemberId(), Name: o.GetName(), Observation: o,
		AskedMs: begun.Add(took / 2).UnixMilli(), RoundTripUs: took.Microseconds()}, nil
}

// bestOf is whose answer counts: that of the last epoch, term and configuration, of the leader itself if it is among them; -1:
// none does. One that does not name the member whose seat it is comes from another process, at an address that was used again.
func bestOf(
	seats []Seat, described []*quoratepb.Cluster, answered []int, cluster uint64, newest decide.Epoch,
) (int, error) {
	best, former := -1, error(nil)
	for _, i := range answered {
		d := described[i]
		if !isOf(d, seats[i].Member, cluster) {
			continue
		}
		if epochOf(d, &seats[i]).Former(newest) {
			former = leftOut(d, &seats[i], newest)
			continue
		}
		if best < 0 || rank(d, &seats[i], described[best], &seats[best]) > 0 {
			best = i
		}
	}
	if best >= 0 {
		return best, nil
	}
	return -1, former
}

// isOf tells whether a member's answer is that of a leader of the cluster that has the member.
func isOf(d *quoratepb.Cluster, member string, cluster uint64) bool {
	return d.GetLeader() != 0 && d.GetClusterId() != 0 && (cluster == 0 || d.GetClusterId() == cluster) &&
		slices.ContainsFunc(d.GetMembers(), func(m *quoratepb.Member) bool { return m.GetName() == member })
}

// othersOf are the answers beside the best that count, as decisions take them.
func othersOf(
	seats []Seat, described []*quoratepb.Cluster, answered []int, best int, cluster uint64, newest decide.Epoch,
) (out []decide.Told) {
	for _, i := range answered {
		d, epoch := described[i], epochOf(described[i], &seats[i])
		if i == best || !isOf(d, seats[i].Member, cluster) || epoch.Former(newest) {
			continue
		}
		t := decide.Told{Member: seats[i].Member, Epoch: epoch, Leader: d.GetLeader()}
		for _, m := range d.GetMembers() {
			t.Members = append(t.Members, decide.Member{ID: m.GetId(), Name: m.GetName(), Voter: votes(m)})
		}
		out = append(out, t)
	}
	return out
}

// epochOf is the epoch of an answer; of a build that tells none that of the claim.
func epochOf(d *quoratepb.Cluster, seat *Seat) decide.Epoch {
	return decide.ParseEpoch(d.GetEpoch()).Or(seat.Epoch)
}

// leftOut says why the answer of a member counts no more, and what to do if it should.
func leftOut(d *quoratepb.Cluster, seat *Seat, newest decide.Epoch) error {
	if d.GetEpoch() == "" {
		return fmt.Errorf("%s follows a leader, and does not tell its epoch; other claims have the annotation %s %q, and that "+
			"of %s does not: a recovery may have left it out. If none did, run `%s`", seat.Member,
			objects.AnnotationEpoch, newest.Name, seat.Member, decide.Kubectl(seat.Namespace,
				"annotate --overwrite pvc %s %s=%s", seat.Member, objects.AnnotationEpoch, newest.Name))
	}
	return fmt.Errorf("%s follows a leader of epoch %q, and claims have the annotation %s %q: a recovery left those members "+
		"out. If nothing is left of %q, and its writes may be lost, take the annotation off the claims that have it: "+
		"`%s`", seat.Member, d.GetEpoch(), objects.AnnotationEpoch, newest.Name, newest.Name,
		decide.Kubectl(seat.Namespace, "annotate pvc NAME %s-", objects.AnnotationEpoch))
}

// rank compares the answers of two members.
func rank(a *quoratepb.Cluster, from *Seat, b *quoratepb.Cluster, other *Seat) int {
	leads := func(c *quoratepb.Cluster, name string) int {
		for _, m := range c.GetMembers() {
			if m.GetLeader() && m.GetName() == name {
				return 1
			}
		}
		return 0
	}
	return cmp.Or(cmp.Compare(epochOf(a, from).Number, epochOf(b, other).Number),
		cmp.Compare(a.GetTerm(), b.GetTerm()), cmp.Compare(a.GetConfig().GetIndex(), b.GetConfig().GetIndex()),
		cmp.Compare(leads(a, from.Member), leads(b, other.Member)))
}

// answers is what each member tells of its own log.
func (g *Group) answers(ctx context.Context, cluster uint64) (out []decide.Answer) {
	got, answered, _ := each(ctx, g, func(ctx context.Context, conn *grpc.ClientConn) (*quoratepb.Observation, error) {
		return quoratepb.NewDoctorClient(conn).Observe(ctx, &quoratepb.ObserveRequest{})
	})
	for _, i := range answered {
		o := got[i]
		if cluster != 0 && o.GetClusterId() != cluster || o.GetName() != g.seats[i].Member ||
			o.GetCore().GetSuperseded() != "" {
			continue
		}
		a := decide.Answer{Member: o.GetName(), Epoch: o.GetCore().GetEpoch(), Term: o.GetCore().GetLastTerm(),
			Index: int64(o.GetCore().GetLastIndex()), Revision: o.GetStore().GetRevision()}
		if a.Term == 0 { // a build that tells no epoch either
			a.Epoch = g.seats[i].Epoch.Number
		}
		for _, m := range o.GetConfig().GetMembers() {
			// one that never started has no name, and `quorate recover` takes the id for one
			name := cmp.Or(m.GetName(), strconv.FormatUint(m.GetId(), 16))
			if m.GetName() == "" && m.GetId() == o.GetMemberId() {
				name = o.GetName() // which the cluster may not know yet
			}
			a.Members = append(a.Members, name)
			if m.GetVoter() || m.GetOutgoing() {
				a.Voters = append(a.Voters, name)
			}
		}
		out = append(out, a)
	}
	return out
}
