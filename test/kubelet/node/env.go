package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment is the variables of a container, in the order in which they were given.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) list() []string {
	var all []string
	for _, name := range e.names {
		all = append(all, name+"="+e.values[name])
	}
	return all
}

// expand replaces $(NAME) by the variable's value, where there is one, and $$ by $.
func (e *environment) expand(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch end := strings.Index(after, ")"); {
		case !found:
			return out.String()
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "(") && end > 0:
			if value, ok := e.values[after[1:end]]; ok {
				out.WriteString(value)
			} else {
				out.WriteString("$" + after[:end+1])
			}
			text = after[end+1:]
		default:
			out.WriteByte('$')
			text = after
		}
	}
}

func (w *worker) environment(ctx context.Context, image Image, c *corev1.Container) (*environment, error) {
	e := &environment{values: map[string]string{}}
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("HOSTNAME", hostname(w.pod))
	for _, variable := range image.Env {
		name, value, _ := strings.Cut(variable, "=")
		e.set(name, value)
	}
	e.set("KUBERNETES_SERVICE_HOST", w.node.APIAddress)
	e.set("KUBERNETES_SERVICE_PORT", "443")
	e.set("KUBERNETES_SERVICE_PORT_HTTPS", "443")
	for _, source := range c.EnvFrom {
		if err := w.envFrom(ctx, e, source); err != nil {
			return nil, err
		}
	}
	for _, variable := range c.Env {
		if variable.ValueFrom == nil {
			e.set(variable.Name, e.expand(variable.Value))
			continue
		}
		value, ok, err := w.valueFrom(ctx, variable.ValueFrom, c)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if ok {
			e.set(variable.Name, value)
		}
	}
	return e, nil
}

func (w *worker) envFrom(ctx context.Context, e *environment, source corev1.EnvFromSource) error {
	var all map[string]string
	var err error
	switch {
	case source.ConfigMapRef != nil:
		all, err = w.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		all, err = w.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	}
	for name, value := range all {
		e.set(source.Prefix+name, value)
	}
	return err
}

// valueFrom returns a variable's value, and whether it has one.
func (w *worker) valueFrom(ctx context.Context, from *corev1.EnvVarSource, c *corev1.Container) (string, bool, error) {
	var all map[string]string
	var err error
	var key string
	var optional *bool
	switch {
	case from.FieldRef != nil:
		value, err := w.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := resourceField(from.ResourceFieldRef, c)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		key, optional = from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional
		all, err = w.configMap(ctx, from.ConfigMapKeyRef.Name, optional)
	case from.SecretKeyRef != nil:
		key, optional = from.SecretKeyRef.Key, from.SecretKeyRef.Optional
		all, err = w.secret(ctx, from.SecretKeyRef.Name, optional)
	default:
		return "", false, fmt.Errorf("its source is of a kind that this kubelet does not know")
	}
	if err != nil {
		return "", false, err
	}
	value, ok := all[key]
	if !ok && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("there is no key %s", key)
	}
	return value, ok, nil
}

// configMap returns the values of a configuration map; none if it is absent and may be. Without the API they are those of
// before.
func (w *worker) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	return w.remember("configmap "+name, optional, func() (map[string]string, error) {
		m, err := w.node.Client.CoreV1().ConfigMaps(w.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		all := maps.Clone(m.Data)
		if all == nil {
			all = map[string]string{}
		}
		for key, value := range m.BinaryData {
			all[key] = string(value)
		}
		return all, nil
	})
}

func (w *worker) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	return w.remember("secret "+name, optional, func() (map[string]string, error) {
		s, err := w.node.Client.CoreV1().Secrets(w.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		all := map[string]string{}
		for key, value := range s.Data {
			all[key] = string(value)
		}
		return all, nil
	})
}

func (w *worker) remember(key string, optional *bool, read func() (map[string]string, error)) (map[string]string, error) {
	all, err := read()
	switch known, ok := w.known[key]; {
	case err == nil:
		w.known[key] = all
		return all, nil
	case errors.IsNotFound(err):
		return nil, unlessOptional(err, optional)
	case ok:
		return known, nil
	}
	return nil, err
}

func unlessOptional(err error, optional *bool) error {
	if errors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

// field is what the downward API says of a pod.
func (w *worker) field(path string) (string, error) {
	p := w.pod
	if name, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['"); ok {
		switch name {
		case "metadata.labels":
			return p.Labels[key], nil
		case "metadata.annotations":
			return p.Annotations[key], nil
		}
	}
	lines := func(m map[string]string) string {
		var all []string
		for key, value := range m {
			all = append(all, fmt.Sprintf("%s=%q", key, value))
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	switch path {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "metadata.labels":
		return lines(p.Labels), nil
	case "metadata.annotations":
		return lines(p.Annotations), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return w.node.Address, nil
	case "status.podIP", "status.podIPs":
		return w.sandbox.Address, nil
	}
	return "", fmt.Errorf("this kubelet does not know the field %s", path)
}

// resourceField is a request or a limit, in units of the divisor, rounded up. Without one it is what the node has.
func resourceField(ref *corev1.ResourceFieldSelector, c *corev1.Container) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok {
		if quantity, ok = capacity()[corev1.ResourceName(name)]; !ok {
			return "", fmt.Errorf("this kubelet does not know the resource %s", ref.Resource)
		}
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == "cpu" {
		return fmt.Sprint((quantity.MilliValue() + divisor.MilliValue() - 1) / divisor.MilliValue()), nil
	}
	return fmt.Sprint((quantity.Value() + divisor.Value() - 1) / divisor.Value()), nil
}

func hostname(p *corev1.Pod) string {
	if p.Spec.Hostname != "" {
		return p.Spec.Hostname
	}
	return p.Name
}
