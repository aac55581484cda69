package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// kubectlQuorate runs commands of kubectl quorate: by somebody who has the rights that docs/kubernetes.md names, and no others;
// and by somebody without rights.
func kubectlQuorate(ctx context.Context, c *cluster) error {
	if c.plugin == "" {
		return errors.New("it needs -plugin PATH")
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	secrets, names := []string{c.rootSecret}, []string{}
	for _, p := range pods {
		names = append(names, p.Name)
		if name := p.Labels["quorate.io/cluster"]; name != "" && !slices.Contains(secrets, name+"-ca") {
			secrets = append(secrets, name+"-ca") // of the operator's
		}
	}
	person, err := c.account(ctx, "person", []rbacv1.PolicyRule{
		{APIGroups: []string{"quorate.io"}, Resources: []string{"quorateclusters"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: secrets},
	})
	if err != nil {
		return err
	}
	nobody, err := c.account(ctx, "nobody", nil)
	if err != nil {
		return err
	}
	for _, line := range []struct {
		by, words string
		wants     []string
		status    int
	}{
		{person, "status", names, 0},
		{person, "member list", names, 0},
		{person, "put /plugin here", []string{"OK"}, 0},
		{person, "get /plugin", []string{"here"}, 0},
		{person, "etcdctl get /plugin --print-value-only", []string{"here"}, 0},
		{person, "doctor", nil, 0},
		{nobody, "status", []string{"list the pods of", "forbidden"}, 1},
	} {
		said, status := c.runPlugin(ctx, line.by, strings.Fields(line.words)...)
		if status != line.status {
			return fmt.Errorf("kubectl quorate %s ended with %d: %s", line.words, status, said)
		}
		for _, text := range line.wants {
			if !strings.Contains(said, text) {
				return fmt.Errorf("kubectl quorate %s does not say %q: %s", line.words, text, said)
			}
		}
	}
	return c.inPod(ctx, names[0], names)
}

// inPod runs commands in a member's container, without the plugin, and reads its log.
func (c *cluster) inPod(ctx context.Context, pod string, members []string) error {
	inside := []string{"exec", pod, "-c", container, "--", "quorate"}
	client := []string{"--endpoints", c.access.endpoints[0], "--user", c.access.user + ":" + c.access.password}
	if c.access.authority != nil {
		client = append(client, "--cacert", "/etc/quorate/tls/ca.crt")
	}
	for _, line := range []struct {
		words  []string
		wants  []string
		status int
	}{
		{slices.Concat(inside, []string{"status"}, client), members, 0},
		{slices.Concat(inside, []string{"no-such-command"}), []string{"no-such-command"}, 2},
		{[]string{"logs", pod, "-c", container, "--tail=1"}, []string{"\n"}, 0},
		{[]string{"logs", pod, "-c", container, "--previous"}, []string{"has no such run"}, 1},
	} {
		arguments := append([]string{"--kubeconfig", c.plane.Kubeconfig, "-n", c.namespace}, line.words...)
		said, status := c.runProgram(ctx, "kubectl", arguments...)
		if status != line.status {
			return fmt.Errorf("kubectl %s ended with %d: %s", strings.Join(line.words, " "), status, said)
		}
		for _, text := range line.wants {
			if !strings.Contains(said, text) {
				return fmt.Errorf("kubectl %s does not say %q: %s", strings.Join(line.words, " "), text, said)
			}
		}
	}
	return nil
}

// runPlugin runs kubectl quorate with a kubeconfig, and returns what it said and its status.
func (c *cluster) runPlugin(ctx context.Context, kubeconfig string, words ...string) (string, int) {
	return c.runProgram(ctx, c.plugin,
		append([]string{"--kubeconfig", kubeconfig, "-n", c.namespace, c.pluginName()}, words...)...)
}

// runProgram runs a program, and returns what it said and its status.
func (c *cluster) runProgram(ctx context.Context, program string, arguments ...string) (string, int) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), "HOME="+c.directory)
	out, err := command.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return string(out), ended.ExitCode()
	case err != nil:
		return err.Error(), -1
	}
	return string(out), 0
}

// pluginName is by what kubectl quorate knows the cluster.
func (c *cluster) pluginName() string {
	if one, ok := c.subject.(operated); ok {
		return one.named()
	}
	return c.set()
}

// account makes an account with rights in the cluster's namespace, and returns its kubeconfig.
func (c *cluster) account(ctx context.Context, name string, rules []rbacv1.PolicyRule) (string, error) {
	accounts := c.plane.Client.CoreV1().ServiceAccounts(c.namespace)
	meta := metav1.ObjectMeta{Name: name}
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	rights := c.plane.Client.RbacV1()
	if _, err := rights.Roles(c.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err != nil {
		return "", err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.namespace}}}
	if _, err := rights.RoleBindings(c.namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(c.plane.Kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientKey, user.Token = "", "", token.Status.Token
	}
	path := filepath.Join(c.directory, c.namespace+"."+name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
