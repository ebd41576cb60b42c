{{- define "stopgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "stopgate.selector" -}}
app.kubernetes.io/name: stopgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stopgate.labels" -}}
{{ include "stopgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The server file: what the values say, and what the chart itself decides. */}}
{{- define "stopgate.serverFile" -}}
{{- $name := include "stopgate.name" . }}
{{- $file := deepCopy .Values.config }}
{{- $http := $file.http | default dict }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
{{- $_ := set $http "hosts" (concat $hosts ($http.hosts | default list)) }}
{{- $_ := set $file "http" $http }}
{{- $_ := set $file "listen" "0.0.0.0:8790" }}
{{- $_ := set $file "data" "/var/lib/stopgate" }}
{{- if .Values.database.secret }}{{ $_ := set $file "database" "${STOPGATE_DATABASE}" }}{{ end }}
{{- $_ := set $file "sandbox" (merge (dict "mode" .Values.sandbox.mode) ($file.sandbox | default dict)) }}
{{- toYaml $file }}
{{- end }}
