package changes

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// formView is the form of a change.
type formView struct {
	Verbs     []wording.Verb
	Verb      wording.Verb // that is asked for; its name is empty if none is
	Unknown   string       // a verb that there is not
	Takes     takes
	Members   []choiceView
	Learners  []choiceView // that may take the place of another
	Protocols []protocolView
	Columns   []string // of the table of members of the verb change
	Asked     answersView
}

// answersView are the answers that a form has already.
type answersView struct {
	Name, URLs, With, Join, Force string
	Learner                       bool
	More                          map[string]string // the values of the verb change, a line for each
}

// choiceView is a member to be chosen.
type choiceView struct {
	Word   string // by which the form names it
	Name   string
	Is     string
	URLs   []string
	Chosen bool
	More   map[string]bool // the columns of the verb change in which it is chosen
}

type protocolView struct {
	wording.Protocol
	Chosen bool
}

// planForm shows the verbs, or the form of one.
func planForm(ctx context.Context, r *page.Request) (any, error) {
	a := askedOf(r.Query)
	v := formView{Verbs: wording.Verbs}
	if !a.known() {
		v.Unknown = a.verb
		return v, nil
	}
	cluster, err := describe(ctx, r)
	if err != nil {
		return nil, err
	}
	v.fill(a, cluster)
	return v, nil
}

// fill puts in what a form asks for, and the answers that were given.
func (v *formView) fill(a *asked, cluster *quoratepb.Cluster) {
	v.Verb, v.Takes = wording.Verb{Name: a.verb, About: wording.About(a.verb)}, told[a.verb]
	v.Asked = answersView{Name: a.name, URLs: a.urls, With: a.with, Join: a.join, Force: a.force, Learner: a.learner,
		More: map[string]string{}}
	for key, values := range a.more {
		v.Asked.More[key] = strings.Join(values, "\n")
	}
	for _, m := range byName(cluster) {
		c := choiceOf(cluster, m)
		c.Chosen = slices.ContainsFunc(a.members, c.means)
		for _, key := range moreKeys {
			c.More[key] = slices.ContainsFunc(a.more[key], c.means)
		}
		v.Members = append(v.Members, c)
		if m.Role == quoratepb.Role_ROLE_LEARNER && !c.Chosen {
			c.Chosen = c.means(a.with)
			v.Learners = append(v.Learners, c)
		}
	}
	v.Columns = []string{"remove", "promote", "demote", "cordon", "uncordon"}
	for _, p := range wording.Protocols {
		v.Protocols = append(v.Protocols, protocolView{p, p.Name == a.protocol})
	}
}

// byName are the members of a cluster in the order in which people look for them.
func byName(cluster *quoratepb.Cluster) []*quoratepb.Member {
	return slices.SortedStableFunc(slices.Values(cluster.GetMembers()), func(a, b *quoratepb.Member) int {
		return cmp.Compare(progress.Name(a), progress.Name(b))
	})
}

// choiceOf is a member by the word that names it: its name, or its id if that names no other.
func choiceOf(cluster *quoratepb.Cluster, m *quoratepb.Member) choiceView {
	c := choiceView{Word: m.Name, Name: progress.Name(m), Is: wording.MemberRole(m) + ", " + observed.StateOf(m),
		URLs: m.PeerUrls, More: map[string]bool{}}
	if found, err := wording.FindMember(cluster, m.Name); err != nil || found.Id != m.Id || m.Name == "" {
		c.Word = observed.Hex(m.Id)
	}
	return c
}

func (c *choiceView) means(word string) bool { return word == c.Word || word == c.Name }

func describe(ctx context.Context, r *page.Request) (*quoratepb.Cluster, error) {
	answer, err := quoratepb.NewMembershipClient(r.Conn).Describe(ctx, &quoratepb.DescribeRequest{})
	return answer.GetCluster(), err
}

// planView is a plan.
type planView struct {
	Fault    string // why there is none
	Line     string
	Config   string
	Rows     []rowView
	Blockers [][]prose.Piece
	Warnings [][]prose.Piece
	Undo     string
	UndoNote string
	Done     bool
	Start    *startView // nil: it cannot be started
	ReadOnly bool       // it could be, if the console had actions
	Command  string     // that starts it
	Edit     string     // where the answers are changed
}

// rowView is a row of the table of a plan.
type rowView struct {
	wording.PlanRow
	Quorum, Superquorum, Tolerates, Class string
}

// startView is the form that starts what was planned.
type startView struct {
	Path, Spec, Request, Back string
	Confirm                   string // what must be typed; empty: nothing
	Removes                   int
}

// planned shows the plan of what the query asks for.
func planned(ctx context.Context, r *page.Request) (any, error) {
	a := askedOf(r.Query)
	if !a.known() || !a.begun() {
		return nil, page.ErrHidden
	}
	v, err := planOf(ctx, r, a, planPath, startPath)
	if err == nil {
		v.Edit += "#plan-form"
	}
	return v, err
}

// planCommand is the command line that shows the same plan.
func planCommand(r *page.Request) string {
	a := askedOf(r.Query)
	if !a.known() || !a.begun() || a.check() != nil {
		return ""
	}
	return r.Command(a.command("--dry-run")...)
}

// maxPlans is how often a plan is made anew because the members changed between looking and planning.
const maxPlans = 2

// planOf asks for a plan. Faults of the request are part of the view.
func planOf(ctx context.Context, r *page.Request, a *asked, path, action string) (*planView, error) {
	v := &planView{Edit: a.address(path)}
	if err := a.check(); err != nil {
		v.Fault = err.Error()
		return v, nil
	}
	for attempt := 1; ; attempt++ {
		cluster, err := describe(ctx, r)
		if err != nil {
			return nil, err
		}
		spec, err := a.spec(cluster)
		if err != nil {
			v.Fault = sentence(err).Error()
			return v, nil
		}
		plan, err := quoratepb.NewMembershipClient(r.Conn).Plan(ctx, spec)
		switch {
		case err != nil && isStale(err) && attempt < maxPlans:
			continue
		case err != nil && refuses(err):
			v.Fault = sentence(err).Error()
			return v, nil
		case err != nil:
			return nil, err
		}
		spec.After = plan.WaitsFor // the reader sees them in the plan
		v.tell(r, cluster, plan)
		v.offer(r, a, cluster, spec, action)
		return v, nil
	}
}

func isStale(err error) bool {
	return slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
		_, stale := detail.(*quoratepb.StaleConfig)
		return stale
	})
}

// refuses reports whether an error is about the request, and not about who asks or who answers.
func refuses(err error) bool {
	return slices.Contains([]codes.Code{codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.AlreadyExists},
		status.Code(err))
}

// tell puts a plan into words.
func (v *planView) tell(r *page.Request, cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) {
	v.Line, v.Config, v.Done = wording.PlanLine(cluster, plan), wording.ConfigID(plan.Config), plan.Done
	v.Blockers = prose.All(plan.Blockers)
	for _, row := range wording.PlanRows(plan) {
		view := rowView{PlanRow: row, Quorum: wording.Quorum(row.Now), Superquorum: wording.Superquorum(row.Now),
			Tolerates: wording.Tolerance(row.Now), Class: strengthClass(row.Now)}
		if n := len(v.Rows); row.Title == "" && n > 0 { // the detail is of the step, whose first row this is not
			v.Rows[n-1].Detail, view.Detail = view.Detail, ""
		}
		v.Rows = append(v.Rows, view)
	}
	if len(plan.Blockers) == 0 { // else it must not be done
		v.Warnings, v.Undo = prose.All(plan.Warnings), r.Asking(wording.Undo(plan.Undo))
		v.UndoNote = wording.UndoNote(v.Undo)
	}
}

// strengthClass is the class of the tag that says how many failures are tolerated.
func strengthClass(s *quoratepb.Strength) string {
	switch n := s.GetTolerates(); {
	case n < 0:
		return "bad"
	case n == 0:
		return "warn"
	}
	return "good"
}

// offer adds what starts the change, if it may be started.
func (v *planView) offer(r *page.Request, a *asked, cluster *quoratepb.Cluster, spec *quoratepb.ChangeSpec, action string) {
	if len(v.Blockers) > 0 || v.Done {
		return
	}
	v.Command = r.Command(a.command()...)
	v.ReadOnly = !r.Admin
	if !r.Admin {
		return
	}
	text, err := protojson.Marshal(spec)
	if err != nil {
		v.Fault = "The plan cannot be put into a form: use the command."
		return
	}
	v.Start = &startView{Path: action, Spec: string(text), Request: observed.Hex(1 + rand.Uint64N(math.MaxUint64)),
		Back: v.Edit, Confirm: confirmation(cluster, spec), Removes: len(spec.Remove)}
}

// confirmation is what must be typed before members are removed: their names.
func confirmation(cluster *quoratepb.Cluster, spec *quoratepb.ChangeSpec) string {
	var names []string
	for _, id := range spec.GetRemove() {
		names = append(names, page.Text(wording.MemberName(cluster, id)))
	}
	return strings.Join(names, ", ")
}
