package phrases

// asks are the words about steps of other programs, in simplified and in traditional
// Chinese.
var asks = map[Key][2]string{
	"%s asks by %s: %s":                                {"%s 通过 %s 请求：%s", "%s 透過 %s 請求：%s"},
	"what the source says (its own claims):":           {"来源自己的说法（未经证实）：", "來源自己的說法（未經證實）："},
	"source %s":                                        {"来源 %s", "來源 %s"},
	"source: %s (%s)":                                  {"来源：%s（%s）", "來源：%s（%s）"},
	"mine in this session":                             {"此会话中我的", "此工作階段中我的"},
	"%s (%s of %s in 30 days)":                         {"%s（30 天内 %s/%s）", "%s（30 天內 %s/%s）"},
	"%s (wide: %s; %s of %s in 30 days)":               {"%s（范围宽：%s；30 天内 %s/%s）", "%s（範圍寬：%s；30 天內 %s/%s）"},
	"any program":                                      {"任何程序", "任何程式"},
	"runs whatever its arguments name":                 {"会运行参数指定的任何内容", "會執行參數指定的任何內容"},
	"runs scripts of the package":                      {"会运行软件包的脚本", "會執行套件的指令碼"},
	"runs what the files of the directory say":         {"会运行目录中文件指定的内容", "會執行目錄中檔案指定的內容"},
	"runs commands in containers or on other machines": {"会在容器或其他机器上运行命令", "會在容器或其他機器上執行命令"},
	"also push, and hooks of the repository":           {"还包括 push 和仓库的钩子", "還包括 push 和儲存庫的掛鉤"},
	"sends to any remote, and overwrites there":        {"可推送到任何远程仓库并覆盖其内容", "可推送到任何遠端儲存庫並覆寫其內容"},
	"runs hooks of the repository":                     {"会运行仓库的钩子", "會執行儲存庫的掛鉤"},
	"its options run programs":                         {"其选项可运行程序", "其選項可執行程式"},
	"any file, also outside the repository":            {"任何文件，包括仓库之外的", "任何檔案，包括儲存庫之外的"},
	"sends and writes any file":                        {"可发送和写入任何文件", "可傳送和寫入任何檔案"},
}
