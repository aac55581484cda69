package observed

import "time"

// Clock is how far the clock of a member is ahead of that of the member that asked it, and how far from the truth that may be:
// half of the way there and back. known is false if it was not asked so, or is the one that asked.
func (a *Answer) Clock(m *Member) (ahead, within time.Duration, known bool) {
	if a.GetAlone() || m.Asked.GetAskedMs() == 0 || m.Says.GetNowMs() == 0 || m.ID == a.GetByMember() {
		return 0, 0, false
	}
	ahead = time.Duration(m.Says.GetNowMs()-m.Asked.GetAskedMs()) * time.Millisecond
	return ahead, max(time.Millisecond, time.Duration(m.Asked.GetRoundTripUs())*time.Microsecond/2), true
}
