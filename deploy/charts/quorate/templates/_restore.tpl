{{/*
The container that makes a founder's directory from a continuous backup. Its flags are those that the member founds with. It changes
nothing where a member is already.
*/}}
{{- define "quorate.restore" -}}
{{- $founding := dict -}}
{{- range include "quorate.foundingEnv" . | fromJsonArray }}{{ $_ := set $founding (index . 0) (index . 1) }}{{ end -}}
{{- $peer := include "quorate.tls" (dict "root" . "side" "peer") | fromJson -}}
- name: restore
  image: {{ include "quorate.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [quorate]
  args:
    - restore
    - --skip-existing
    - {{ printf "--from=%s" .Values.restore.from | quote }}
    - {{ printf "--at=%s" .Values.restore.at | quote }}
    - --name=$(MY_POD_NAME)
    - --data-dir={{ .Values.persistence.mountPath }}/data
    - --initial-cluster={{ get $founding "ETCD_INITIAL_CLUSTER" }}
    - --initial-cluster-token={{ get $founding "ETCD_INITIAL_CLUSTER_TOKEN" }}
    - --initial-advertise-peer-urls={{ $peer.scheme }}://$(MY_POD_NAME).{{ include "quorate.domain" . }}:{{ int .Values.containerPorts.peer }}
    {{- range include "quorate.encryption" . | fromJsonArray }}
    - {{ tpl . $ | quote }}
    {{- end }}
    {{- with .Values.restore.extraFlags }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
  env:
    - name: MY_POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    {{- with .Values.extraEnvVars }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
  {{- with include "quorate.envFrom" . | trim }}
  envFrom:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if .Values.containerSecurityContext.enabled }}
  securityContext:
    {{- omit .Values.containerSecurityContext "enabled" | toYaml | nindent 4 }}
  {{- end }}
  {{- with .Values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - {name: data, mountPath: {{ .Values.persistence.mountPath }}}
    {{- range include "quorate.mounts" . | fromJsonArray }}
    - {name: {{ index . 0 }}, mountPath: {{ index . 1 }}{{ if hasKey (index . 2) "secret" }}, readOnly: true{{ end }}}
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
{{- end -}}

{{/*
The flags of a member that say how its disk is encrypted, as JSON, from extraFlags or else from extraEnvVars: `quorate restore` reads
no variable, and would leave a directory in the clear, which the member refuses. A variable that comes from extraEnvVarsCM or
extraEnvVarsSecret is not seen here.
*/}}
{{- define "quorate.encryption" -}}
{{- $out := list -}}
{{- range $name := list "encryption-key-file" "encryption-kms" -}}
{{- $flag := "" -}}
{{- $next := false -}}
{{- range $.Values.extraFlags -}}
{{- $word := toString . -}}
{{- if $next -}}
{{- $flag = printf "--%s=%s" $name $word -}}
{{- $next = false -}}
{{- else if regexMatch (printf "^--?%s$" $name) $word -}}
{{- $next = true -}}
{{- else if regexMatch (printf "^--?%s=" $name) $word -}}
{{- $flag = printf "--%s" (regexReplaceAll "^--?" $word "") -}}
{{- end -}}
{{- end -}}
{{- $variable := printf "ETCD_%s" ($name | upper | replace "-" "_") -}}
{{- range $.Values.extraEnvVars -}}
{{- if and (not $flag) (eq .name $variable) -}}
{{- $flag = printf "--%s=$(%s)" $name $variable -}}
{{- end -}}
{{- end -}}
{{- with $flag -}}{{- $out = append $out . -}}{{- end -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}
