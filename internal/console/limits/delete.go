package limits

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

// deleteView is what ends with a limit.
type deleteView struct {
	Name   string
	Fault  string // why there is nothing to delete
	Of     []string
	Allows []string
	Quota  bool
	Admin  bool
}

// confirm says what ends.
func confirm(ctx context.Context, r *page.Request) (any, error) {
	v := deleteView{Name: r.Query.Get("name"), Admin: r.Admin}
	states, err := limitsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	found := find(states, v.Name)
	switch {
	case v.Name == "":
		v.Fault = "This page is reached from the list of limits, by the link beside one."
	case found == nil:
		v.Fault = fmt.Sprintf("There is no limit %s: it was deleted meanwhile, or never was.", page.Name(v.Name))
	default:
		v.Of, v.Allows, v.Quota = subjectOf(found.GetLimit()), allowsOf(found.GetLimit()), hasQuota(found.GetLimit())
	}
	return v, nil
}

func deleteCommand(r *page.Request) string {
	name := r.Query.Get("name")
	if name == "" || !typeable(name) {
		return ""
	}
	return r.Command("limit", "delete", name)
}

// remove deletes the limit whose name was typed.
func remove(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	name := r.Form.Get("name")
	switch {
	case name == "":
		return out, page.FormError("The form names no limit. Nothing was changed.")
	case r.Form.Get("typed") != name:
		return out, page.FormError("The name that was typed is not " + page.Name(name) + ". Nothing was changed.")
	}
	_, err = quoratepb.NewLimitsClient(r.Conn).DeleteLimit(ctx, &quoratepb.DeleteLimitRequest{Name: name})
	return page.Outcome{To: path, Said: fmt.Sprintf("The limit %s was deleted.", page.Name(name))}, err
}
