package changes

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Drawer draws from one random stream.
type Drawer struct {
	Rng       *rand.Rand
	Protocols []consensus.Protocol // those to choose from
	MaxVoters int
	Known     []consensus.MemberID            // all present and former members
	Leading   []consensus.MemberID            // members that consider themselves leader
	Add       func() (consensus.Member, bool) // a new member that starts about now; false if there are enough
}

// Describe returns the name and the URLs of a member of a simulated cluster.
func Describe(id consensus.MemberID) consensus.Member {
	return consensus.Member{
		ID: id, Name: fmt.Sprintf("m%d", id-1), PeerURLs: []string{fmt.Sprintf("http://10.0.0.%d:2380", id)},
	}
}

// Draw draws a change that an operator might request, or a mix of steps that no operator would.
func (d *Drawer) Draw(c *consensus.Config) consensus.ChangeRequest {
	request := consensus.ChangeRequest{Protocol: dice.Pick(d.Rng, d.Protocols...)}
	switch draw := d.Rng.IntN(20); {
	case draw < 3:
		request.Steps = d.addSteps(c, consensus.ChangeAddLearner, 1+d.Rng.IntN(3))
	case draw == 3:
		request.Steps = d.addSteps(c, consensus.ChangeAddVoter, dice.Pick(d.Rng, 1, 1, 2, d.MaxVoters-len(c.Voters)))
	case draw < 8:
		request.Steps = d.someSteps(consensus.ChangePromote, c.Learners, d.MaxVoters-len(c.Voters))
	case draw < 11:
		request.Steps = d.replaceSteps(c)
	case draw < 13:
		request.Steps = d.someSteps(consensus.ChangeRemove, c.IDs(), len(c.Members))
	case draw == 13:
		request.Steps = d.someSteps(consensus.ChangeDemote, c.Voters, 2)
	case draw == 14:
		request.Steps = d.updateSteps(c)
	case draw == 15: // all voters are replaced
		request.Steps = append(Steps(consensus.ChangePromote, c.Learners), Steps(consensus.ChangeRemove, c.Voters)...)
	case draw == 16 && len(c.Voters) > 3: // five to three, seven to three
		request.Steps = Steps(consensus.ChangeRemove, d.shuffled(c.Voters)[3:])
	case draw == 17: // a leader that removes itself
		for _, id := range d.Leading {
			kind := dice.Pick(d.Rng, consensus.ChangeRemove, consensus.ChangeDemote)
			request.Steps = Steps(kind, []consensus.MemberID{id})
		}
	case draw == 18:
		request.Steps = d.mixedSteps(c)
	}
	if len(request.Steps) == 0 {
		request.Steps = d.oddSteps(c)
	}
	return request
}

// Steps makes a step of one kind for each of several members.
func Steps(kind consensus.ChangeKind, ids []consensus.MemberID) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for _, id := range ids {
		list = append(list, consensus.ChangeStep{Kind: kind, Member: Describe(id)})
	}
	return list
}

func (d *Drawer) shuffled(ids []consensus.MemberID) []consensus.MemberID {
	ids = slices.Clone(ids)
	d.Rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// someSteps makes a step of one kind for one member or several, at most so many.
func (d *Drawer) someSteps(kind consensus.ChangeKind, ids []consensus.MemberID, most int) []consensus.ChangeStep {
	most = min(most, len(ids))
	if most < 1 {
		return nil
	}
	n := dice.Pick(d.Rng, 1, 1, 2, most)
	return Steps(kind, d.shuffled(ids)[:min(n, most)])
}

// addSteps adds machines that start about now, with nothing on their disks.
func (d *Drawer) addSteps(c *consensus.Config, kind consensus.ChangeKind, n int) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for range n {
		if len(c.Voters)+len(list) >= d.MaxVoters {
			break
		}
		added, ok := d.Add()
		if !ok {
			break
		}
		list = append(list, Steps(kind, []consensus.MemberID{added.ID})...)
		list[len(list)-1].Member.Promote = kind == consensus.ChangeAddLearner && dice.Chance(d.Rng, 0.4)
	}
	return list
}

// replaceSteps replaces voters by learners, or by new machines.
func (d *Drawer) replaceSteps(c *consensus.Config) []consensus.ChangeStep {
	n := min(1+d.Rng.IntN(2), len(c.Voters))
	list := d.someSteps(consensus.ChangePromote, c.Learners, n)
	if len(list) == 0 {
		list = d.addSteps(c, dice.Pick(d.Rng, consensus.ChangeAddLearner, consensus.ChangeAddVoter), n)
	}
	out := dice.Pick(d.Rng, consensus.ChangeRemove, consensus.ChangeRemove, consensus.ChangeDemote)
	return append(list, Steps(out, d.shuffled(c.Voters)[:min(n, max(len(list), 1))])...)
}

func (d *Drawer) updateSteps(c *consensus.Config) []consensus.ChangeStep {
	list := d.someSteps(consensus.ChangeUpdate, c.IDs(), 3)
	for i := range list {
		list[i].Member.PeerURLs = []string{Elsewhere(d.Rng.IntN(250), list[i].Member.ID)}
	}
	return list
}

func (d *Drawer) mixedSteps(c *consensus.Config) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for _, id := range d.shuffled(c.IDs()) {
		switch d.Rng.IntN(5) {
		case 0:
			list = append(list, Steps(consensus.ChangeRemove, []consensus.MemberID{id})...)
		case 1:
			kind := consensus.ChangeDemote
			if c.IsLearner(id) {
				kind = consensus.ChangePromote
			}
			list = append(list, Steps(kind, []consensus.MemberID{id})...)
		}
	}
	return append(list, d.addSteps(c, consensus.ChangeAddLearner, d.Rng.IntN(2))...)
}

// oddSteps draws impossible steps: for a member that was removed or never was one, or a promotion of a voter.
func (d *Drawer) oddSteps(c *consensus.Config) []consensus.ChangeStep {
	var outside []consensus.MemberID
	for _, id := range d.Known {
		if !c.Contains(id) {
			outside = append(outside, id)
		}
	}
	kind := dice.Pick(d.Rng, consensus.ChangeAddLearner, consensus.ChangePromote, consensus.ChangeRemove,
		consensus.ChangeAddVoter)
	if list := d.someSteps(kind, outside, 1); len(list) > 0 {
		return list
	}
	return d.someSteps(consensus.ChangePromote, c.Voters, 1)
}

// Words describe a change, for traces.
func Words(r *consensus.ChangeRequest) string {
	if r.Abort {
		return "abort"
	}
	text := r.Protocol.String()
	for i := range r.Steps {
		text += fmt.Sprintf(" %v %d", r.Steps[i].Kind, r.Steps[i].Member.ID)
	}
	if r.Expected != (consensus.ConfigID{}) {
		text += fmt.Sprintf(" expecting %v", r.Expected)
	}
	return text
}

// Elsewhere is another address of a machine at its first address, Describe: a change that names it does not move the machine.
func Elsewhere(n int, id consensus.MemberID) string {
	return fmt.Sprintf("http://10.1.%d.%d:2380", n, id)
}

// AtElsewhere returns the machine to which such an address belongs, if the URL is one.
func AtElsewhere(url string) (id consensus.MemberID, ok bool) {
	var n int
	_, err := fmt.Sscanf(url, "http://10.1.%d.%d:2380", &n, &id)
	return id, err == nil
}
