package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A right is what a rule allows, or a call needs: a verb on a resource, which has its group before it.
type right struct{ resource, verb string }

func (r right) String() string { return r.verb + " " + r.resource }

// audited is a line of the audit log.
type audited struct {
	Verb      string `json:"verb"`
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// tellUnused tells which rights the operator's chart gives that no scenario of this run used.
func (g *ground) tellUnused(ctx context.Context, out io.Writer) error {
	given, err := g.given(ctx)
	if err != nil {
		return err
	}
	used, err := usedIn(g.plane.Audit)
	if err != nil {
		return err
	}
	var unused []string
	for one := range given {
		if !used[one] {
			unused = append(unused, one.String())
		}
	}
	slices.Sort(unused)
	fmt.Fprintf(out, "%d of %d rights of the operator were used; not: %s\n", len(given)-len(unused), len(given),
		cmp.Or(strings.Join(unused, ", "), "none"))
	return nil
}

// given are the rights that are bound to the operator's account.
func (g *ground) given(ctx context.Context) (map[right]bool, error) {
	api, all := g.plane.Client.RbacV1(), map[right]bool{}
	everywhere, err := api.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range everywhere.Items {
		if toOperator(b.Subjects) {
			role, err := api.ClusterRoles().Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			addRights(all, role.Rules)
		}
	}
	inside, err := api.RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, b := range inside.Items {
		if toOperator(b.Subjects) {
			role, err := api.Roles(b.Namespace).Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			addRights(all, role.Rules)
		}
	}
	return all, nil
}

func toOperator(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == operatorSpace
	})
}

func addRights(to map[right]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					to[right{named(group, resource), verb}] = true
				}
			}
		}
	}
}

func named(group, resource string) string {
	if group == "" {
		return resource
	}
	return group + "/" + resource
}

// usedIn are the rights that the calls of an audit log needed.
func usedIn(path string) (map[right]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, lines := map[right]bool{}, bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one audited
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%w: %.200s", err, lines.Text())
		}
		if o := one.ObjectRef; o != nil {
			resource := o.Resource
			if o.Subresource != "" {
				resource += "/" + o.Subresource
			}
			all[right{named(o.APIGroup, resource), one.Verb}] = true
		}
	}
	return all, lines.Err()
}
