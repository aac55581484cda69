package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
)

// warn adds what is worth a thought about the steps as a whole.
func (d *drafter) warn() {
	p := d.plan
	if len(p.Steps) == 0 {
		return
	}
	last := p.Steps[len(p.Steps)-1].After
	for i := range p.Steps {
		if during := p.Steps[i].During; during.Tolerates < min(p.Now.Tolerates, last.Tolerates) {
			d.warning("during %q the cluster %s, now it %s", p.Steps[i].Title, stands(during), stands(p.Now))
			break
		}
	}
	if last.Tolerates < p.Now.Tolerates {
		d.warning("afterwards the cluster %s, now it %s", stands(last), stands(p.Now))
	}
	if last.Voters%2 == 0 && last.Voters != p.Now.Voters {
		d.warning("%d voters stand no more failures than %d, and each write needs one more of them",
			last.Voters, last.Voters-1)
	}
	g := d.goal()
	for _, id := range g.config.Voters {
		seen, ok := d.real.Member(id)
		if ok && !seen.Active && id != d.real.Leader && slices.Contains(d.real.Config.Voters, id) {
			d.warning("%s stays a voter and has not answered for %s", g.names.label(id), seconds(seen.SilentMS))
		}
	}
	d.cordons(g)
	d.zones(g)
}

// cordons warns if only cordoned voters are left: then any of them leads.
func (d *drafter) cordons(g *goal) {
	marked := func(id consensus.MemberID) bool { return !g.marks(id, true) }
	if voters := g.config.Voters; len(pick(voters, marked)) == len(voters) && len(pick(d.real.Config.Voters, marked)) <
		len(d.real.Config.Voters) {
		d.warning("every voter is cordoned afterwards, which means nothing: any of them may lead")
	}
}

// zones warns of new voters that fail together with others.
func (d *drafter) zones(g *goal) {
	zoneOf := func(id consensus.MemberID) string {
		m, _ := d.real.Member(id)
		return m.Zone
	}
	for _, id := range g.config.Voters {
		zone := zoneOf(id)
		if zone == "" || d.real.Config.IsVoter(id) {
			continue
		}
		same := pick(g.config.Voters, func(other consensus.MemberID) bool { return other != id && zoneOf(other) == zone })
		if len(same) > 0 {
			d.warning("%s shares zone %s with %s", g.names.label(id), zone, g.names.list(same))
		}
	}
}

func (d *drafter) roomWarning(g *goal) {
	d.warning("%s must go before its successor can join: until that one has caught up, the cluster %s",
		g.names.list(g.room), stands(d.plan.Steps[len(d.plan.Steps)-1].After))
}

// stands says what a strength means.
func stands(s Strength) string {
	if s.Tolerates < 0 {
		return "cannot write"
	}
	if s.Tolerates == 0 {
		return "stands no failure"
	}
	return "stands " + plural.Of(s.Tolerates, "failure")
}
