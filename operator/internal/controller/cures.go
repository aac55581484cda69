package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// cureOf is what to do about a finding in Kubernetes: a change of the spec, where the operator makes what a command would
// change, or the command as it is typed there.
func cureOf(c *v1alpha1.QuorateCluster, f *doctor.Finding) string {
	switch f.Code {
	case doctor.OneVoter, doctor.TwoVoters, doctor.EvenVoters:
		if c.Spec.Members >= 3 && c.Spec.Members%2 == 1 {
			return fmt.Sprintf("the operator brings the cluster to the %d members of spec.members: status.action says what "+
				"it waits for", c.Spec.Members)
		}
		return fmt.Sprintf(`kubectl patch quoratecluster %s -n %s --type merge -p '{"spec":{"members":%d}}'`, c.Name,
			c.Namespace, max(3, c.Spec.Members+1-c.Spec.Members%2))
	case doctor.BackupRefused:
		return "members restart for spec.backup.place, one after the other: status.action says what they wait for"
	}
	if grep, ok := strings.CutPrefix(f.Cure, "journalctl --grep "); ok && len(f.Members) > 0 {
		return fmt.Sprintf("kubectl logs -n %s %s | grep %s", c.Namespace, f.Members[0], grep)
	}
	line, ok := strings.CutPrefix(f.Cure, "quorate ")
	if !ok || slices.ContainsFunc(strings.Fields(line), func(word string) bool { return slices.Contains(notByPlugin, word) }) {
		return f.Cure
	}
	return fmt.Sprintf("kubectl quorate -n %s %s %s", c.Namespace, c.Name, line)
}

// notByPlugin are words of commands that `kubectl quorate` refuses: of files of a member's machine, and of other addresses.
var notByPlugin = []string{"config", "recover", "restore", "--endpoints", "--cacert"}
