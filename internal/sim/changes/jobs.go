package changes

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Jobs draws, from one random stream, the jobs that operators request.
type Jobs struct {
	Rng       *rand.Rand
	Protocols []consensus.Protocol // those to choose from
	MaxVoters int
	Add       func(learner bool) []membership.Newcomer // one that starts about now, or none if there are enough
}

// Draw draws a job.
func (j *Jobs) Draw(config *consensus.Config, leader consensus.MemberID) membership.Spec {
	spec := membership.Spec{
		JoinWithinMS: int64(dice.Pick(j.Rng, 5_000, 60_000)),
		Protocol:     dice.Pick(j.Rng, append(j.Protocols, 0)...),
	}
	draw := j.Rng.IntN(10)
	if len(config.Learners) == 0 && dice.Chance(j.Rng, 0.6) {
		draw = 4
	}
	switch draw {
	case 0, 1, 2:
		spec.Kind, spec.Remove, spec.Add = membership.KindReplace, j.some(config.Voters), j.Add(false)
	case 3:
		if len(config.Voters) < j.MaxVoters {
			spec.Add = j.Add(false)
		}
	case 4, 5:
		spec.Add = j.Add(true) // a standby
	case 6:
		spec.Promote = j.some(config.Learners)
	case 7:
		spec.Remove = j.some(config.IDs())
	case 8:
		spec.Kind, spec.Drain = membership.KindDrain, []consensus.MemberID{leader}
	default:
		id := j.some(config.Voters)
		if config.Cordoned(id[0]) {
			spec.Uncordon = id
		} else {
			spec.Cordon = id
		}
	}
	return spec
}

// some draws one member, if there are any.
func (j *Jobs) some(ids []consensus.MemberID) []consensus.MemberID {
	if len(ids) == 0 {
		return nil
	}
	return []consensus.MemberID{ids[j.Rng.IntN(len(ids))]}
}
