package membership

import (
	"fmt"

	"github.com/quorate/quorate/internal/base/typed"
)

// Unproved names the voters that a new job would remove before their successors are there, which happens where both have one
// URL, although nothing shows that they are lost: silence does not, they may be starting. They must be known to have lost
// their disks, to be rolled back or to be corrupt, or an operator must give a reason (Spec.Force).
func Unproved(s *Spec, v *View) (blockers []string) {
	if s.Force != "" || v.Faults.ResetTheSilent {
		return nil
	}
	for _, id := range s.Remove {
		m, known := v.Config.Member(id)
		seen, _ := v.Member(id)
		lost := seen.State == LostItsDisk || seen.State == RolledBack || seen.State == MarkedCorrupt
		if !known || !v.Config.IsVoter(id) || lost {
			continue
		}
		name := v.publishedName(&m)
		if name == "" {
			name = id.String()
		}
		for i := range s.Add {
			if sharedURL(m.PeerURLs, s.Add[i].PeerURLs) == "" {
				continue
			}
			blockers = append(blockers, fmt.Sprintf("%s has not lost its disk as far as is known here, and would be removed "+
				"before its successor has caught up: silence does not show that it is gone, it may be starting. Start it, "+
				"with its data directory; if that is lost for ever, with "+typed.Emptied+", at the same peer URLs: then "+
				"it says that it has lost its disk, and `quorate member reset %s` works. If the machine can not be started, "+
				"either, `quorate member reset %s --force REASON`", name, typed.Word(name), typed.Word(name)))
			break
		}
	}
	return blockers
}
