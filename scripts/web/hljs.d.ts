declare module 'hljs/core.js' { const hljs: any; export default hljs }
