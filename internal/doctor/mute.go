package doctor

import (
	"cmp"
	"slices"
)

// Mute silences a finding for a time, unless it gets worse.
type Mute struct {
	Cluster  uint64   `json:"cluster"`
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"` // as it was when it was muted
	Members  []string `json:"members"`  // the same; empty: the finding was about the cluster
	UntilMS  int64    `json:"until_ms"` // Unix time
}

// Silence parts findings into those that an operator hears and those that are muted. A mute ends with its time, when the
// finding gets worse than it was when it was muted, and when it is about a member that no mute names. An effect of a muted
// finding is muted with it: had it become worse, so had its cause.
func Silence(found []Finding, mutes []Mute, cluster uint64, nowMS int64) (loud, muted []Finding) {
	silent := map[Code]bool{}
	for i := range found {
		f := &found[i]
		quiet := silent[f.Because] || silences(f, mutes, cluster, nowMS)
		if quiet {
			silent[f.Code] = true
			muted = append(muted, *f)
		} else {
			loud = append(loud, *f)
		}
	}
	return loud, muted
}

func silences(f *Finding, mutes []Mute, cluster uint64, nowMS int64) bool {
	var covered []string
	some := false
	for i := range mutes {
		m := &mutes[i]
		if m.Cluster == cluster && m.Code == f.Code && nowMS < m.UntilMS && f.Severity >= m.Severity {
			covered, some = append(covered, m.Members...), true
		}
	}
	return some && !slices.ContainsFunc(f.Members, func(name string) bool { return !slices.Contains(covered, name) })
}

// Standing are the mutes whose time has not come, in the order in which it will.
func Standing(mutes []Mute, nowMS int64) []Mute {
	left := slices.DeleteFunc(slices.Clone(mutes), func(m Mute) bool { return m.UntilMS <= nowMS })
	slices.SortStableFunc(left, func(a, b Mute) int {
		return cmp.Or(cmp.Compare(a.UntilMS, b.UntilMS), cmp.Compare(a.Code, b.Code))
	})
	return left
}
