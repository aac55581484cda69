package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
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
		return decide.Kubectl(c.Namespace, `patch quoratecluster %s --type merge -p '{"spec":{"members":%d}}'`, c.Name,
			max(3, c.Spec.Members+1-c.Spec.Members%2))
	case doctor.BackupRefused:
		return "members restart for spec.backup.place, one after the other: status.action says what they wait for"
	}
	if grep, ok := strings.CutPrefix(f.Cure, "journalctl --grep "); ok && len(f.Members) > 0 {
		return decide.Kubectl(c.Namespace, "logs %s | grep %s", f.Members[0], grep)
	}
	line, ok := strings.CutPrefix(f.Cure, "quorate ")
	if !ok || slices.ContainsFunc(strings.Fields(line), func(word string) bool { return slices.Contains(notByPlugin, word) }) {
		return f.Cure
	}
	return decide.Kubectl(c.Namespace, "quorate %s %s", c.Name, line)
}

// notByPlugin are words of commands that `kubectl quorate` refuses: of files of a member's machine, and of other addresses.
var notByPlugin = []string{"config", "recover", "restore", "--endpoints", "--cacert"}
