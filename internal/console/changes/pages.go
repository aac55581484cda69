package changes

import (
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	aboutReplace = "A new member in the place of one, dead or alive, in six steps."
	aboutPlan    = "A plan changes nothing. It tells each step, what it takes to write in it, and what is in the way."
)

// Pages returns the page of changes, and those that are reached from it.
func Pages() []page.Page {
	c := &changes{}
	hidden := func(path, name, about string, actions []page.Action, sections ...page.Section) page.Page {
		for i := range sections {
			sections[i].Wide = true
		}
		return page.Page{Path: path, Name: name, About: about, Hidden: true, Templates: templates, Sections: sections,
			Actions: actions}
	}
	return []page.Page{
		c.list(),
		hidden(jobPath, "A change", "One job, with all that the cluster says of it.", nil,
			page.Section{ID: "job-one", Live: true, Template: "job-one", Load: c.one, Command: ofJob("show")}),
		hidden(cancelPath, "Cancel a change", "What is undone, and what stays.", []page.Action{{Path: stopPath, Do: cancel}},
			page.Section{ID: "job-cancel", Template: "job-cancel", Load: c.cancelling, Command: ofJob("cancel")}),
		hidden(planPath, "Plan a change", aboutPlan, []page.Action{{Path: startPath, Do: start(jobPath)}},
			page.Section{ID: "plan", Title: "The plan", Template: "plan", Load: planned, Command: planCommand},
			page.Section{ID: "plan-form", Template: "plan-form", Load: planForm}),
		hidden(replacePath, "Replace a member", aboutReplace, []page.Action{{Path: beginPath, Do: start(followPath)}},
			page.Section{ID: "replace-steps", Template: "replace-steps", Load: replaceSteps},
			page.Section{ID: "replace-choose", Title: "Which member is replaced?", Template: "replace-choose",
				Load: replaceChoose, Command: page.Is("member", "list")},
			page.Section{ID: "replace-form", Title: "By which member?", Template: "replace-form", Load: replaceForm},
			page.Section{ID: "replace-plan", Title: "The plan", Template: "plan", Load: replacePlan, Command: replaceCommand}),
		hidden(followPath, "Replace a member", aboutReplace, nil,
			page.Section{ID: "follow-steps", Live: true, Template: "replace-steps", Load: c.followSteps},
			page.Section{ID: "follow-now", Live: true, Template: "follow-now", Load: c.followNow, Command: ofJob("watch")}),
	}
}

// list is the page of changes.
func (c *changes) list() page.Page {
	return page.Page{Path: listPath, Name: "Changes", About: "Jobs that change the members: what runs, waits, and has ended.",
		Templates: templates, Sections: []page.Section{
			{ID: "changes-open", Title: "Running and waiting", Live: true, Wide: true, Template: "changes-open", Load: c.open,
				Command: page.Is("member", "watch")},
			{ID: "changes-begin", Title: "Change something", Wide: true, Template: "changes-begin", Load: begin},
			{ID: "changes-ended", Title: "Ended", Live: true, Wide: true, Template: "changes-ended", Load: ended,
				Command: page.Is("member", "jobs")},
		}}
}

// ofJob is the command line that does something with the job of the page.
func ofJob(verb string) func(*page.Request) string {
	return func(r *page.Request) string {
		id, err := jobID(r.Query.Get("id"))
		if err != nil {
			return ""
		}
		return r.Command("member", "jobs", verb, observed.Hex(id))
	}
}
