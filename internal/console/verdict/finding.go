package verdict

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	ctldoctor "github.com/quorate/quorate/internal/ctl/doctor"
	"github.com/quorate/quorate/internal/doctor"
)

// mostFindings is how many findings are shown, besides those that others explain.
const mostFindings = 40

// mostEffects is how many findings are shown behind the one that explains them.
const mostEffects = 20

// verdictView is the verdict as the page shows it.
type verdictView struct {
	First   *finding // nil: nothing above advice was found
	Others  []finding
	Left    int    // findings that are not shown
	Summary string // of all, in a few words
	At      string
	Members int
	Answers int
	Kinds   int    // of faults that were looked for
	Alone   string // the member that was asked alone; empty: all were
	By      string // the member that asked the others; empty: not known
	Fit     bool   // all members answered
}

// finding is one thing that is wrong, with what it explains.
type finding struct {
	Code     doctor.Code
	Severity string
	Impact   string
	Look     string // the class of its colour
	Head     []prose.Piece
	Rest     [][]prose.Piece // cause, evidence and what to do, one clause each
	Means    string
	Cure     string // a command
	Links    []link
	Effects  []effect
	More     int // effects that are not shown
}

// effect is a finding that another one explains.
type effect struct {
	Code  doctor.Code
	Words []prose.Piece
}

// errNothing is why there is no verdict.
var errNothing = status.Error(codes.Unavailable, "no member said what it observes")

// judge asks the members and judges what they observe.
func judge(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if all.Answered() == 0 {
		return nil, errNothing
	}
	return show(all, doctor.Judge(all.Collected), r), nil
}

// show puts findings into the form of the page. They are in the order of Judge: causes before effects, the worst first.
func show(all *observed.Answer, found []doctor.Finding, r *page.Request) *verdictView {
	s := &verdictView{Summary: ctldoctor.Summary(found), At: page.Moment(all.GetAtMs()), Members: len(all.Members),
		Answers: all.Answered(), Kinds: len(doctor.Codes())}
	if all.GetAlone() {
		s.Alone = all.Members[0].Name
		if m := slices.IndexFunc(all.Members, func(m *observed.Member) bool { return m.Says != nil }); m >= 0 {
			s.Alone = all.Members[m].Name
		}
	}
	if by := all.Member(all.GetByMember()); by != nil {
		s.By = by.Name
	}
	s.Fit = s.Answers == s.Members && s.Alone == ""
	calm := doctor.Worst(found) == 0 || doctor.Worst(found) == doctor.Advice
	roots := 0
	var last *finding
	for i := range found {
		f := &found[i]
		if f.Because != "" {
			last.add(f)
			continue
		}
		if roots++; roots > mostFindings {
			s.Left++
			last = nil
			continue
		}
		one := describe(all, found, f, r)
		if s.First == nil && !calm {
			s.First = &one
			last = s.First
			continue
		}
		s.Others = append(s.Others, one)
		last = &s.Others[len(s.Others)-1]
	}
	return s
}

// add adds an effect. A finding that is not shown has none.
func (f *finding) add(e *doctor.Finding) {
	switch {
	case f == nil:
	case len(f.Effects) >= mostEffects:
		f.More++
	default:
		f.Effects = append(f.Effects, effect{e.Code, prose.Of(e.Sentence)})
	}
}

// impacts say what a severity means, and looks are their colours.
var (
	impacts = map[doctor.Severity]string{
		doctor.CannotWrite:  "Writes stop, of all clients or of those of a member.",
		doctor.NextFailure:  "Writes stop at the next failure, or soon by themselves.",
		doctor.SlowerThanIs: "Something is slower, or less, than it should be.",
		doctor.Advice:       "Nothing is wrong yet.",
	}
	looks = map[doctor.Severity]string{
		doctor.CannotWrite: "bad", doctor.NextFailure: "bad", doctor.SlowerThanIs: "warn", doctor.Advice: "",
	}
)

func describe(all *observed.Answer, found []doctor.Finding, f *doctor.Finding, r *page.Request) finding {
	one := finding{Code: f.Code, Severity: f.Severity.String(), Impact: impacts[f.Severity], Look: looks[f.Severity],
		Cure: cureLine(f.Cure, r), Links: linksOf(all, found, f)}
	head, rest := prose.Clauses(f.Sentence)
	one.Head = prose.Of(begin(all, head))
	for _, clause := range rest {
		one.Rest = append(one.Rest, prose.Of(begin(all, clause)+"."))
	}
	for _, row := range doctor.Codes() {
		if row.Code == f.Code {
			one.Means = row.Means
		}
	}
	return one
}

// begin begins a sentence with a capital letter, unless that is the name of a member.
func begin(all *observed.Answer, text string) string {
	if slices.ContainsFunc(all.Members, func(m *observed.Member) bool { return strings.HasPrefix(text, m.Name) }) {
		return text
	}
	return prose.Capital(text)
}
