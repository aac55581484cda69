package verdict

import (
	"net/url"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/doctor"
)

// link leads to a page that shows more, or plans the cure.
type link struct {
	To, Text string
	Plan     bool // it opens a plan
}

// ofClients are the first words of commands that ask a member, and have a flag for which one.
var ofClients = []string{"status", "member", "doctor", "compact", "endpoint", "upgrade", "top", "lease", "latency", "get"}

// cureLine is the command of a cure, with the member that it asks, and the user as whom.
func cureLine(cure string, r *page.Request) string {
	words := strings.Fields(cure)
	if len(words) < 2 || words[0] != "quorate" || !slices.Contains(ofClients, words[1]) {
		return cure
	}
	return r.Asking(cure)
}

// replaceable are findings about one member that may stay: another one in its place cures it.
var replaceable = []doctor.Code{
	doctor.DiskLost, doctor.MemberDown, doctor.MemberHangs, doctor.Unreached, doctor.DiskHangs, doctor.DiskFull,
	doctor.DiskSlow, doctor.MemberStalls,
	doctor.StoreStalls, doctor.ApplyBehind, doctor.HeartbeatsLate, doctor.VoterBehind, doctor.VoterNotStarted,
}

// removable are findings about a member that was added and helps none: it may go.
var removable = []doctor.Code{doctor.VoterNotStarted, doctor.NotStarted, doctor.LearnerStuck}

// stopped are findings by which nothing can be planned: no leader takes a change, and a majority may come back.
var stopped = []doctor.Code{doctor.NoQuorum, doctor.NoLeader, doctor.CutOff, doctor.CorruptCluster}

// linksOf are the pages that show more of a finding, or plan its cure.
func linksOf(all *observed.Answer, found []doctor.Finding, f *doctor.Finding) (links []link) {
	planned := !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return slices.Contains(stopped, f.Code) && f.Severity == doctor.CannotWrite
	})
	one := only(all, f.Members)
	if planned {
		links = plans(all, f, one)
	}
	switch {
	case one != nil && one.ID != 0:
		links = append(links, link{To: "/members?member=" + observed.Hex(one.ID), Text: "Look at " + one.Name})
	case len(f.Members) > 0 || strings.HasPrefix(f.Cure, "quorate member list"):
		links = append(links, link{To: "/members", Text: "Look at the members"})
	}
	for _, p := range []struct{ cure, to, text string }{
		{"quorate member jobs", "/changes", "Look at the changes"},
		{"quorate upgrade", "/alarms#level", "Look at the feature level"},
	} {
		if strings.HasPrefix(f.Cure, p.cure) {
			links = append(links, link{To: p.to, Text: p.text})
		}
	}
	if f.Code == doctor.NoSpace || f.Code == doctor.MemberCorrupt || f.Code == doctor.CorruptCluster {
		links = append(links, link{To: "/alarms", Text: "Look at the alarms"})
	}
	return links
}

// plans are changes of members that cure a finding. one is the member that it is about; nil: there are several, or none.
func plans(all *observed.Answer, f *doctor.Finding, one *observed.Member) (links []link) {
	plan := func(text, path string, query url.Values) {
		if one != nil {
			query.Set("member", all.Word(one))
		}
		links = append(links, link{To: path + "?" + query.Encode(), Text: text, Plan: true})
	}
	verb := func(name string) url.Values { return url.Values{"verb": {name}} }
	switch {
	case strings.HasPrefix(f.Cure, "quorate member plan --add"):
		one = nil
		plan("Plan to add a member", "/changes/plan", verb("add"))
	case one == nil:
	case strings.HasPrefix(f.Cure, "quorate member reset "):
		plan("Plan to reset "+one.Name, "/changes/plan", verb("reset"))
	case strings.HasPrefix(f.Cure, "quorate member update "):
		plan("Plan to change the URLs of "+one.Name, "/changes/plan", verb("update"))
	case strings.HasPrefix(f.Cure, "quorate member uncordon "):
		plan("Plan to uncordon "+one.Name, "/changes/plan", verb("uncordon"))
	}
	if one != nil && slices.Contains(replaceable, f.Code) {
		plan("Plan to replace "+one.Name, "/changes/replace", url.Values{})
	}
	if one != nil && slices.Contains(removable, f.Code) {
		plan("Plan to remove "+one.Name, "/changes/plan", verb("remove"))
	}
	return links
}

// only is the one member that a finding is about, if it is about one.
func only(all *observed.Answer, names []string) *observed.Member {
	if len(names) != 1 {
		return nil
	}
	var one *observed.Member
	for _, m := range all.Members {
		if m.Name == names[0] {
			if one != nil {
				return nil
			}
			one = m
		}
	}
	return one
}
