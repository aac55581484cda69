package wording

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// User says in whose name a version was written, or the key deleted. It is empty where there are no users.
func User(a *quoratepb.Author) string {
	switch {
	case a == nil:
		return "not known"
	case a.GetLeaseExpired():
		return "lease expired"
	case a.GetUserHidden():
		return "another user"
	case a.GetUserCut():
		return a.GetUser() + "…"
	}
	return a.GetUser()
}

// Through says which member, or native client, proposed a change.
func Through(a *quoratepb.Author) string {
	switch {
	case a == nil:
		return ""
	case a.GetClientId() != 0:
		return "client " + strconv.FormatUint(a.GetClientId(), 16)
	}
	return memberOf(a.GetMember(), a.GetMemberId())
}

// By says both: in whose name, and through whom.
func By(a *quoratepb.Author) string {
	user, through := User(a), Through(a)
	switch {
	case a == nil:
		return user
	case user == "":
		return "through " + through
	case a.GetLeaseExpired():
		return user + ", found by " + through
	}
	return user + " through " + through
}

func memberOf(name string, id uint64) string {
	return cmp.Or(name, "member "+strconv.FormatUint(id, 16))
}

// Between says when a version was written, in UTC. The first time is rounded down to a second and the other one up, so that it
// is as true as the clocks were.
func Between(after, before *quoratepb.Moment) string {
	switch {
	case after == nil && before == nil:
		return "not known"
	case before == nil:
		return "after " + Time(after.GetUnixMs())
	case after == nil:
		return "before " + Time(roundUp(before.GetUnixMs()))
	case after.GetUnixMs() > before.GetUnixMs():
		return fmt.Sprintf("clocks differ: after %s by %s, before %s by %s", Time(after.GetUnixMs()), Teller(after),
			Time(roundUp(before.GetUnixMs())), Teller(before))
	}
	from, to := Time(after.GetUnixMs()), Time(roundUp(before.GetUnixMs()))
	if from[:len(time.DateOnly)] == to[:len(time.DateOnly)] {
		to = to[len(time.DateOnly)+1:]
	}
	return from + " to " + to
}

// Teller is the member whose clock showed a moment.
func Teller(m *quoratepb.Moment) string { return memberOf(m.GetMember(), m.GetMemberId()) }

// Time is a time in UTC, to the second.
func Time(unixMs int64) string { return time.UnixMilli(unixMs).UTC().Format(time.DateTime) }

func roundUp(unixMs int64) int64 { return (unixMs + 999) / 1000 * 1000 }
