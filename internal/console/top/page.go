package top

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ranking"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: "/top", Name: "Top", About: "Which keys and clients the members work for most.",
		Templates: templates,
		Sections: []page.Section{
			{ID: "top-choice", Wide: true, Template: "top-choice", Load: choose},
			{ID: "top-ranking", Title: "Ranking", Live: true, Wide: true, Template: "top-ranking", Load: rank,
				Command: command},
		},
	}
}

const (
	// defaultRows and mostRows are how many rows are shown; a member sends no more.
	defaultRows = 20
	mostRows    = 128
	// mostMembers is how many members are offered for a choice.
	mostMembers = 64
)

// choice is one value of a form.
type choice struct {
	Value, Name string
	Chosen      bool
}

// options are what a reader chose. A value that the page does not offer counts as the one that it offers first.
type options struct {
	ranking.View
	window quoratepb.TopWindow
	member uint64 // 0: all
	rows   int
}

var (
	ways = []choice{{Value: ranking.ByOperations, Name: "operations"}, {Value: ranking.ByBytes, Name: "bytes"},
		{Value: ranking.ByProcessor, Name: "processor time"}, {Value: ranking.ByWatchers, Name: "watchers"}}
	subjects = []choice{{Value: "prefixes", Name: "prefixes of keys"}, {Value: "clients", Name: "clients"}}
	windows  = []choice{{Value: shortWindow, Name: "the last 10 seconds"}, {Value: longWindow, Name: "the last 5 minutes"}}
)

const (
	shortWindow = "10s"
	longWindow  = "5m"
	clients     = "clients"
)

// chosen is a value of the query if the page offers it, else the first one that it offers.
func chosen(r *page.Request, key string, offered []choice) string {
	value := r.Query.Get(key)
	if slices.ContainsFunc(offered, func(c choice) bool { return c.Value == value }) {
		return value
	}
	return offered[0].Value
}

func optionsOf(r *page.Request) options {
	o := options{rows: defaultRows,
		View: ranking.View{By: chosen(r, "by", ways), Clients: chosen(r, "of", subjects) == clients}}
	if chosen(r, "window", windows) == longWindow {
		o.window = quoratepb.TopWindow_TOP_WINDOW_LONG
	}
	if id, err := strconv.ParseUint(r.Query.Get("member"), 16, 64); err == nil {
		o.member = id
	}
	if n, err := strconv.Atoi(r.Query.Get("rows")); err == nil && n > 0 {
		o.rows = min(n, mostRows)
	}
	return o
}

// choiceView is the form.
type choiceView struct {
	Ways, Subjects, Windows, Members []choice
}

// choose is the form. Its members are those that the member that is asked knows.
func choose(ctx context.Context, r *page.Request) (any, error) {
	o := optionsOf(r)
	mark := func(offered []choice, value string) []choice {
		all := slices.Clone(offered)
		for i := range all {
			all[i].Chosen = all[i].Value == value
		}
		return all
	}
	v := choiceView{Ways: mark(ways, o.By), Subjects: mark(subjects, chosen(r, "of", subjects)),
		Windows: mark(windows, chosen(r, "window", windows)), Members: []choice{{Name: "all members", Chosen: o.member == 0}}}
	list, err := pb.NewClusterClient(r.Conn).MemberList(ctx, &pb.MemberListRequest{})
	if err != nil {
		return nil, err
	}
	for _, m := range list.GetMembers()[:min(len(list.GetMembers()), mostMembers)] {
		id := strconv.FormatUint(m.GetID(), 16)
		v.Members = append(v.Members, choice{id, cmp.Or(m.GetName(), id), m.GetID() == o.member})
	}
	return v, nil
}

// source is what one member answered, or why it did not.
type source struct {
	Name, Fault string
	id          uint64
	answer      *quoratepb.TopAnswer
}

// row is a row as the table shows it.
type row struct {
	Operations, Bytes, Processors, Share, Watchers string
	Prefix, Operation                              string
	User, Host                                     string
	Part                                           int // the share in hundredths, for a bar
}

type rankView struct {
	Clients  bool
	By       string
	Rows     []row
	Total    row
	Answered int
	Members  int
	Covers   string
	Notes    []string
	More     template.URL // a page with more rows; empty: there are none
	Missing  []source
}

// rank asks all members, or one of them, and adds what they answered.
func rank(ctx context.Context, r *page.Request) (any, error) {
	o := optionsOf(r)
	answer, err := quoratepb.NewTopClient(r.Conn).Get(ctx,
		&quoratepb.TopRequest{By: o.Weight(), Window: o.window, AllMembers: true})
	if err != nil {
		return nil, err
	}
	var answers []*quoratepb.TopAnswer
	v := rankView{Clients: o.Clients, By: o.By}
	for _, s := range sourcesOf(answer, r.Member) {
		switch {
		case o.member != 0 && s.id != o.member:
			continue
		case s.answer == nil:
			v.Missing = append(v.Missing, s)
		default:
			answers = append(answers, s.answer)
		}
		v.Members++
	}
	v.Answered = len(answers)
	sum := ranking.Summarize(answers, o.View)
	v.Covers = page.Duration(sum.Covers.Round(time.Second / 10))
	v.Total = rowOf(&sum.Total)
	for i := range sum.Rows[:min(len(sum.Rows), o.rows)] {
		v.Rows = append(v.Rows, rowOf(&sum.Rows[i]))
	}
	v.Notes = sum.Notes(o.View, o.rows, func(n float64) string { return page.Bytes(n) })
	if len(sum.Rows) > o.rows && o.rows < mostRows {
		query := maps.Clone(r.Query)
		query.Set("rows", strconv.Itoa(min(mostRows, 2*o.rows+10)))
		v.More = template.URL("/top?" + query.Encode()) // #nosec: a path of the console, with an encoded query
	}
	return v, nil
}

// sourcesOf are the answers of all members. A build that asks no others answers for itself.
func sourcesOf(a *quoratepb.TopAnswer, self string) (all []source) {
	if len(a.GetMembers()) == 0 {
		return []source{{Name: self, id: a.GetMemberId(), answer: a}}
	}
	for _, m := range a.GetMembers() {
		all = append(all, source{Name: cmp.Or(m.GetName(), strconv.FormatUint(m.GetId(), 16)), id: m.GetId(),
			answer: m.GetAnswer(), Fault: cmp.Or(m.GetFaultText(), m.GetFault(), "it did not say why")})
	}
	return all
}

func rowOf(r *ranking.Row) row {
	one := row{Operations: ranking.Number(r.Operations), Bytes: page.Bytes(r.Bytes), Processors: ranking.Percent(r.Processors),
		Share: ranking.Percent(r.Share), Watchers: ranking.Whole(r.Watchers), Prefix: r.Prefix, Operation: r.Operation,
		User: r.User, Host: r.Host, Part: int(math.Round(100 * min(max(r.Share, 0), 1)))}
	if r.Watchers == 0 {
		one.Watchers = "–"
	}
	return one
}

// command is the command line that shows the same.
func command(r *page.Request) string {
	o := optionsOf(r)
	words := []string{"top", "--by", o.By, "--window", chosen(r, "window", windows)}
	if o.Clients {
		words = append(words, "--clients")
	}
	if o.rows != defaultRows {
		words = append(words, "--rows", fmt.Sprint(o.rows))
	}
	return r.Command(append(words, "--through-member")...)
}
