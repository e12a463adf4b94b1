{{- /* One release is called nize as in nize.yaml, or has the chart's name in its own. */}}
{{- define "nize.name" -}}
{{- if contains "nize" .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-nize" (.Release.Name | trunc 48 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "nize.labels" -}}
app: {{ include "nize.name" . }}
app.kubernetes.io/name: nize
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
