{{- define "selector" -}}
app.kubernetes.io/name: etcd, app.kubernetes.io/instance: {{ .Release.Name }}, app.kubernetes.io/component: etcd
{{- end -}}
{{- define "labels" -}}
{ {{ include "selector" . }}, app.kubernetes.io/managed-by: Helm, helm.sh/chart: "etcd-{{ .Chart.Version }}" }
{{- end -}}
{{- define "host" -}}
$(MY_POD_NAME).{{ .Release.Name }}-etcd-headless.{{ .Release.Namespace }}.svc.cluster.local
{{- end -}}
