package audit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// choice is one of several.
type choice struct {
	Value, Name, About string
	Chosen             bool
}

// formView is the form of a rule.
type formView struct {
	Do, At     string
	N          int // of the rule that is changed; 0: a new one
	Typed      typedRule
	Levels     []choice
	Shapes     []choice
	Operations []choice
	Rules      int
	Fault      string
}

// form shows the fields of a rule.
func form(ctx context.Context, r *page.Request) (any, error) {
	c := changeIn(r.Query)
	if !c.writes() {
		return nil, page.ErrHidden
	}
	d, _, _, odd, err := policyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &formView{Do: c.do, Typed: c.typed, Rules: len(d.Rules)}
	switch {
	case odd != nil:
		v.Fault = laterBuild
	case c.do == doEdit && (c.at < 1 || c.at > len(d.Rules)):
		v.Fault = fmt.Sprintf("The policy has no rule %d.", c.at)
	case c.do == doEdit:
		if v.N, v.At = c.at, strconv.Itoa(c.at); !c.complete() {
			v.Typed = typedOf(&d.Rules[c.at-1])
		}
	}
	for _, name := range []string{audit.Metadata.String(), audit.Request.String(), audit.None.String()} {
		v.Levels = append(v.Levels, choice{name, levelWords[name], levelAbouts[name], v.Typed.Level == name})
	}
	if v.Typed.Level == "" {
		v.Levels[0].Chosen = true
	}
	for _, name := range []string{audit.Plain.String(), audit.Hashed.String(), audit.Prefix.String()} {
		chosen := v.Typed.Keys == name || v.Typed.Keys == "" && d.Keys == name
		v.Shapes = append(v.Shapes, choice{name, shapeWords[name], "", chosen})
	}
	for _, name := range audit.Ops() {
		v.Operations = append(v.Operations, choice{Value: name, Chosen: slices.Contains(v.Typed.Operations, name)})
	}
	return v, nil
}

const laterBuild = "A later build wrote the policy, and this one does not understand it: change it by the command of " +
	"that build."

// previewView is what a change would do.
type previewView struct {
	Title    string
	Fault    string
	Held     string
	Rows     []ruleRow
	Rest     bool     // calls that no rule matches are not recorded
	Gone     *ruleRow // the rule that is removed
	Warnings []string
	Version  uint64
	Fields   url.Values
	Admin    bool
	Same     bool
	Command  string // several lines
}

// preview shows the policy after the change.
func preview(ctx context.Context, r *page.Request) (any, error) {
	c := changeIn(r.Query)
	if !c.complete() {
		return nil, page.ErrHidden // nothing was typed yet
	}
	d, version, _, odd, err := policyOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &previewView{Version: version, Fields: c.fields(), Admin: r.Admin}
	if odd != nil {
		v.Fault = laterBuild
		return v, nil
	}
	next, touched, err := c.apply(d)
	var wrong page.FormError
	if errors.As(err, &wrong) {
		v.Fault = string(wrong)
		return v, nil
	}
	v.Rest = restOf(&next)
	v.Title, v.Rows, v.Same = titleOf(&c, touched), rowsOf(&next), version > 0 && string(textOf(&d)) == string(textOf(&next))
	v.mark(&c, &d, touched)
	v.Command = setCommand(&next, r)
	v.Warnings = warningsOf(&next)
	if all, err := observed.Ask(ctx, r); err == nil {
		v.Warnings = append(v.Warnings, silentOf(all)...)
		if active := all.Config.GetLevel(); active != 0 && active < uint32(level.Second) {
			v.Held = fmt.Sprintf("A policy needs feature level %d, and level %d is active: all members must run "+
				"release 1.1 or later.", level.Second, active)
		}
	}
	return v, nil
}

func titleOf(c *change, touched int) string {
	switch c.do {
	case doStart:
		return "The policy begins"
	case doAdd:
		return fmt.Sprintf("A new rule, at place %d", touched+1)
	case doEdit:
		return fmt.Sprintf("Rule %d changes", c.at)
	case doRemove:
		return fmt.Sprintf("Rule %d is removed", c.at)
	}
	return fmt.Sprintf("Rule %d moves up", c.at)
}

// setCommand are the lines that set the same policy.
func setCommand(d *audit.Document, r *page.Request) string {
	text := string(textOf(d))
	return r.Command("audit", "policy", "set", "-") + " <<'END'\n" + text + "\nEND"
}

// mark says what becomes of the rules.
func (v *previewView) mark(c *change, before *audit.Document, touched int) {
	switch c.do {
	case doStart:
		for i := range v.Rows {
			v.Rows[i].Mark, v.Rows[i].MarkLook = "new", "good"
		}
	case doAdd:
		v.Rows[touched].Mark, v.Rows[touched].MarkLook = "new", "good"
	case doEdit:
		v.Rows[touched].Mark, v.Rows[touched].MarkLook = "changed", "warn"
	case doUp:
		v.Rows[touched].Mark, v.Rows[touched].MarkLook = "moved up", "warn"
	case doRemove:
		gone := rowOf(c.at, before.Keys, &before.Rules[touched])
		v.Gone = &gone
	}
}

// warningsOf say what a reader may not have meant.
func warningsOf(d *audit.Document) (all []string) {
	for i := range d.Rules[:max(len(d.Rules)-1, 0)] {
		if rule := &d.Rules[i]; matchesAll(*rule) {
			all = append(all, fmt.Sprintf("Rule %d matches every call: the rules behind it never count.", i+1))
			break
		}
	}
	p, err := audit.Parse(textOf(d))
	if err != nil {
		return all
	}
	if len(d.Rules) == 0 {
		return append(all, "Without a rule nothing is recorded, but changes of the policy.")
	}
	read := &audit.Event{Op: audit.OpRange, User: "\x00", Parts: []audit.Part{{Key: []byte{0}}}}
	if level, _ := p.Match(read); level != audit.None {
		all = append(all, "Reads are recorded, too: each makes a record of some 270 bytes. A rule that does not record range "+
			"and watch, before this one, leaves them out.")
	}
	return all
}

// silentOf says which members have no output: they record nothing, whatever the policy says.
func silentOf(all *observed.Answer) []string {
	var names []string
	for _, m := range all.Members {
		if m.Says != nil && m.Says.GetWindowMs() > 0 && len(m.Says.GetAudit()) == 0 {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"These members were started without --audit-log, and record nothing: " + strings.Join(names, ", ") + "."}
}

// set sets the policy, if it is still of the version that the preview has shown.
func set(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	version, err := strconv.ParseUint(r.Form.Get("version"), 10, 64)
	if err != nil {
		return out, page.FormError("The form does not say which policy it changes. Nothing was changed.")
	}
	d, now, _, odd, err := policyOf(ctx, r)
	switch {
	case err != nil:
		return out, err
	case odd != nil:
		return out, page.FormError(laterBuild + " Nothing was changed.")
	case now != version:
		return out, page.FormError("The policy was changed since the preview was made. Nothing was done: look at the " +
			"preview again.")
	}
	c := changeIn(r.Form)
	if !c.complete() {
		return out, page.FormError("The form has no level. Nothing was changed.")
	}
	next, touched, err := c.apply(d)
	if err != nil {
		return out, err
	}
	_, err = quoratepb.NewAuditClient(r.Conn).SetPolicy(ctx, &quoratepb.SetAuditPolicyRequest{Policy: string(textOf(&next)),
		Version: version})
	return page.Outcome{To: path, Said: titleOf(&c, touched) + ": done. All members follow at once."}, err
}
