package audit

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/console/page"
)

// ruleRow is a rule as tables show it.
type ruleRow struct {
	N                int
	Level            string
	Look             string // the class of its colour
	Calls, By, Where []string
	Keys             string // how keys are written; empty: nothing is recorded
	Mark, MarkLook   string // what a change makes of it; empty: nothing
	Edit, Remove, Up string // links; empty: not shown
}

// policyView is the policy.
type policyView struct {
	Set      bool
	Version  uint64
	Rows     []ruleRow
	Odd      bool // a later build wrote it: this one records all calls instead
	Text     string
	Rest     bool // calls that no rule matches are not recorded
	Starters []starter
	Add      string
}

// levelWords say what becomes of a call, by the level of the rule that counts for it, and levelAbouts what that is.
var (
	levelWords = map[string]string{audit.None.String(): "not recorded", audit.Metadata.String(): "recorded",
		audit.Request.String(): "recorded in detail"}
	levelAbouts = map[string]string{audit.None.String(): "no trace of it",
		audit.Metadata.String(): "who, from where, which keys, and how it ended",
		audit.Request.String():  "also sizes, leases, and what a transaction compares"}
)

// shapeWords say how keys are written.
var shapeWords = map[string]string{"": "as they are", audit.Plain.String(): "as they are", audit.Hashed.String(): "as a hash",
	audit.Prefix.String(): "up to the last slash"}

// policyOf asks for the policy; the error of a policy that this build does not understand is in odd.
func policyOf(ctx context.Context, r *page.Request) (d audit.Document, version uint64, text string, odd error, err error) {
	answer, err := quoratepb.NewAuditClient(r.Conn).Policy(ctx, &quoratepb.AuditPolicyRequest{})
	if err != nil || answer.GetVersion() == 0 {
		return d, 0, "", nil, err
	}
	if _, odd = audit.Parse([]byte(answer.GetPolicy())); odd == nil {
		d, odd = audit.ParseDocument([]byte(answer.GetPolicy()))
	}
	return d, answer.GetVersion(), answer.GetPolicy(), odd, nil
}

func policy(ctx context.Context, r *page.Request) (any, error) {
	d, version, text, odd, err := policyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &policyView{Set: version > 0, Version: version, Odd: odd != nil, Add: rulePath + "?do=" + doAdd}
	if v.Odd {
		v.Text = page.Text(text)
		return v, nil
	}
	if !v.Set {
		v.Starters = starters
		return v, nil
	}
	v.Rows, v.Rest = rowsOf(&d), restOf(&d)
	for i := range v.Rows {
		at := strconv.Itoa(i + 1)
		link := func(do string) string { return rulePath + "?" + url.Values{"do": {do}, "at": {at}}.Encode() }
		v.Rows[i].Edit, v.Rows[i].Remove = link(doEdit), link(doRemove)
		if i > 0 {
			v.Rows[i].Up = link(doUp)
		}
	}
	return v, nil
}

// restOf reports whether there are calls that no rule matches.
func restOf(d *audit.Document) bool { return !slices.ContainsFunc(d.Rules, matchesAll) }

func matchesAll(rule audit.Rule) bool {
	return len(rule.Users)+len(rule.Prefixes)+len(rule.Operations) == 0
}

func rowsOf(d *audit.Document) (rows []ruleRow) {
	for i := range d.Rules {
		rows = append(rows, rowOf(i+1, d.Keys, &d.Rules[i]))
	}
	return rows
}

func rowOf(n int, keys string, rule *audit.Rule) ruleRow {
	row := ruleRow{N: n, Level: levelWords[rule.Level], Calls: []string{"every call"}, By: []string{"everybody"},
		Where: []string{"any"}, Look: "good"}
	if row.Keys = shapeWords[cmp.Or(rule.Keys, keys)]; rule.Level == audit.None.String() {
		row.Keys, row.Look = "", ""
	}
	if len(rule.Operations) > 0 {
		row.Calls = rule.Operations
	}
	if len(rule.Users) > 0 {
		row.By = nil
		for _, user := range rule.Users {
			if user == "" {
				row.By = append(row.By, "nobody logged in")
				continue
			}
			row.By = append(row.By, page.Name(user))
		}
	}
	if len(rule.Prefixes) > 0 {
		row.Where = nil
		for _, prefix := range rule.Prefixes {
			row.Where = append(row.Where, page.Name(prefix)+"…")
		}
	}
	return row
}
